"""Screens that are lists: expiries, links, namespaces, PINs (never a PIN itself), purchases, sockets and trivia."""

from __future__ import annotations

from typing import Any

from emulator.core.wire.cursors import Page
from emulator.dashboard.screen import Query, Screen, Service, list_records
from emulator.features.trivia.rules import Contest, State, sort_order

_MAX_ROWS = 200
"""Namespaces or sockets of one page."""
_MAX_EXPIRIES = 50
"""Expiries that it lists."""


async def _read_clock(service: Service, query: Query) -> dict[str, Any]:
    """Return the next expiries."""
    return {"coming": (await service.contents.coming_expiries(_MAX_EXPIRIES)).next}


async def _read_namespaces(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the namespaces, by name: no button moves while one reaches for it."""
    assert service.namespaces is not None, "the sandbox has namespaces"
    details = (await service.namespaces.list_details(_MAX_ROWS)).details
    details.sort(key=lambda each: each.name)
    return {"details": details, "more": len(await service.namespaces.recent_names()) - len(details)}


async def _read_sockets(service: Service, query: Query) -> dict[str, Any]:
    """Return the open sockets, and the one that the query names."""
    number, page = query["socket"], Page(_MAX_ROWS, query["cursor"])
    is_number = number.isdecimal() and len(number) < 16
    return {
        "listed": service.connections.read(page, query["client_id"], query["channel_id"], query["search"]),
        "chosen": service.connections.find(int(number)) if is_number else None,
    }


async def _read_trivia(service: Service, query: Query) -> dict[str, Any]:
    """Return the list of extensions with questions, or the questions of one. Raises `BadRequest`."""
    id = query["id"]
    if not id:
        return await list_records(service, "trivia", query)
    key, now = Contest.key(id), service.clock.now()
    documents = await service.engine.documents.read([key], now=now)
    contest = Contest.decoded(documents.get(key))
    states = [(state.value, state.removeprefix("state-")) for state in State]
    return {"states": states, "questions": sorted(contest.values(), key=sort_order), "is_missing": not contest}


SCREENS = (
    Screen("clock", "Clock", _read_clock, refresh_seconds=1.0),
    Screen("links", "Links", lambda service, query: list_records(service, "links", query)),
    Screen("namespaces", "Namespaces", _read_namespaces, refresh_seconds=1.0),
    Screen("pins", "PINs", lambda service, query: list_records(service, "pins", query), refresh_seconds=1.0),
    Screen("purchases", "Purchases", lambda service, query: list_records(service, "purchases", query)),
    Screen("sockets", "Sockets", _read_sockets),
    Screen("trivia", "Trivia", _read_trivia),
)
