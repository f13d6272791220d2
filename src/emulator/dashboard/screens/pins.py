"""Live PINs: their remaining time, requesting one, typing one in, and making one expire. Never a PIN itself."""

from __future__ import annotations

from typing import Any, Final

from emulator.control.contents.rules import Filter
from emulator.dashboard.screen import Query, Screen, Service, suggested
from emulator.wire.cursors import FIRST

ROWS: Final = 200


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the digests of the live PINs."""
    client_id, channel_id = query.get("client_id", ""), query.get("channel_id", "")
    found = await service.contents.page(
        "pins", Filter(client_id, channel_id), limit=ROWS, cursor=query.get("cursor", FIRST)
    )
    return {
        "found": found,
        "client_id": client_id,
        "channel_id": channel_id,
        "suggested": suggested(service, query),
    }


SCREEN = Screen("pins", "PINs", read, every=1.0)
