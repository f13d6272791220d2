"""Screens that are lists: expiries, links, namespaces, PINs (never a PIN itself), purchases, sockets and trivia."""

from __future__ import annotations

from typing import Any

from emulator.core.wire.cursors import Page
from emulator.dashboard.screen import Query, Screen, Service, listed
from emulator.features.trivia.rules import Contest, State, sort_order

_ROWS = 200
"""Namespaces or sockets of one page."""
_COMING = 50
"""Expiries that it lists."""


async def _clock(service: Service, query: Query) -> dict[str, Any]:
    """Return the next expiries."""
    return {"coming": (await service.contents.upcoming(_COMING)).next}


async def _namespaces(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the namespaces, by name: no button moves while one reaches for it."""
    assert service.namespaces is not None, "the sandbox has namespaces"
    details = (await service.namespaces.listing(_ROWS)).details
    details.sort(key=lambda each: each.name)
    return {"details": details, "more": len(await service.namespaces.latest()) - len(details)}


async def _sockets(service: Service, query: Query) -> dict[str, Any]:
    """Return the open sockets, and the one that the query names."""
    number, page = query["socket"], Page(_ROWS, query["cursor"])
    is_number = number.isdecimal() and len(number) < 16
    return {
        "listed": service.connections.read(page, query["client_id"], query["channel_id"], query["search"]),
        "chosen": service.connections.find(int(number)) if is_number else None,
    }


async def _trivia(service: Service, query: Query) -> dict[str, Any]:
    """Return the list of extensions with questions, or the questions of one. Raises `BadRequest`."""
    id = query["id"]
    if not id:
        return await listed(service, "trivia", query)
    key, now = Contest.key(id), service.clock.now()
    documents = await service.engine.documents.read([key], now=now)
    contest = Contest.decoded(documents.get(key))
    states = [(state.value, state.removeprefix("state-")) for state in State]
    return {"states": states, "questions": sorted(contest.values(), key=sort_order), "is_missing": not contest}


SCREENS = (
    Screen("clock", "Clock", _clock, every=1.0),
    Screen("links", "Links", lambda service, query: listed(service, "links", query)),
    Screen("namespaces", "Namespaces", _namespaces, every=1.0),
    Screen("pins", "PINs", lambda service, query: listed(service, "pins", query), every=1.0),
    Screen("purchases", "Purchases", lambda service, query: listed(service, "purchases", query)),
    Screen("sockets", "Sockets", _sockets),
    Screen("trivia", "Trivia", _trivia),
)
