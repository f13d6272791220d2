"""Requests, socket frames and deliveries: search, and one of them with everything the journal has."""

from __future__ import annotations

from typing import Any, Final

from emulator.callers import Role
from emulator.dashboard.screen import Query, Screen, Service
from emulator.features.journal.rules import FILTERS
from emulator.journal import DELIVERY, FRAME, REQUEST

_ROWS: Final = "100"
_SHOWN: Final = ("search", "status", "path", "method", "role", "client_id", "channel_id", "kind", "production")
"""The filters that the screen has fields for."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return a page of the journal, or with `entry`, one entry."""
    filters = {name: query[name] for name in FILTERS if query.get(name)}
    common = {
        "filters": {name: query.get(name, "") for name in _SHOWN},
        "given": filters,
        "roles": [str(role) for role in Role],
        "kinds": (REQUEST, FRAME, DELIVERY),
        "journal": service.journal,
        "entry": None,
        "listing": None,
    }
    if not service.journal.is_on:
        return common
    if query.get("entry"):
        entry = service.journals.entry({"id": query["entry"]})
        return common | {"entry": entry, "can_replay": entry.kind == REQUEST and entry.path.startswith("/v1/e/")}
    before = {"before": query["before"]} if query.get("before") else {}
    return common | {"listing": await service.journals.page({**filters, **before, "limit": _ROWS})}


SCREEN = Screen("requests", "Requests", read)
