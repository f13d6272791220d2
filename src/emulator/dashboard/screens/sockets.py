"""Open sockets: their callers and subscriptions, closing and stalling them."""

from __future__ import annotations

from typing import Any, Final

from emulator.dashboard.screen import Query, Screen, Service
from emulator.limits.listing_pages import Page

ROWS: Final = 200


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the open sockets, and the one that the query names."""
    client_id, channel_id = query.get("client_id", ""), query.get("channel_id", "")
    number = query.get("socket", "")
    return {
        "listed": service.connections.read(Page(ROWS, query.get("cursor", "")), client_id, channel_id),
        "client_id": client_id,
        "channel_id": channel_id,
        "number": number,
        "chosen": service.connections.find(int(number)) if number.isdecimal() and len(number) < 16 else None,
        "has_peers": service.settings.has_peers,
    }


SCREEN = Screen("sockets", "Sockets", read)
