"""Screens that are lists: expiries, links, namespaces, PINs (never a PIN itself), purchases, sockets and trivia."""

from __future__ import annotations

from typing import Any

from emulator.control.contents import Filter
from emulator.core.clock import DAY, HOUR, MINUTE
from emulator.core.wire.cursors import Page
from emulator.dashboard.screen import Query, Screen, Service, listed, suggested
from emulator.features.trivia.rules import Contest, State, sort_order

_ROWS = 200
"""Namespaces, PINs or sockets of one page."""
_STEPS = (("1 min", MINUTE), ("5 min", 5 * MINUTE), ("1 h", HOUR))
"""Moves of the clock that its screen offers."""
_LONG_STEPS = (
    ("1 d", DAY, "This deletes stores, rankings and buffers that are not written until then."),
    ("8 d", 8 * DAY, "This deletes nearly all data, polls too: only codes and links live longer."),
)
"""Moves that ask first, with what they delete."""
_COMING = 50
"""Expiries that it lists."""


async def _clock(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the clock."""
    clock = service.control.read_clock()
    return {
        "clock": clock,
        "system": clock.now - clock.offset,
        "steps": _STEPS,
        "long_steps": _LONG_STEPS,
        "coming": (await service.contents.upcoming(_COMING)).next,
    }


async def _namespaces(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the namespaces, those used last first."""
    assert service.namespaces is not None, "the sandbox has namespaces"
    details = (await service.namespaces.listing(_ROWS)).details
    details.sort(key=lambda each: (each.idle, each.name))
    return {"details": details, "more": len(await service.namespaces.latest()) - len(details)}


async def _pins(service: Service, query: Query) -> dict[str, Any]:
    """Return the digests of the live PINs."""
    only = Filter(query["client_id"], query["channel_id"])
    found = await service.contents.page("pins", only, limit=_ROWS, cursor=query["cursor"])
    return {"found": found}


async def _sockets(service: Service, query: Query) -> dict[str, Any]:
    """Return the open sockets, and the one that the query names."""
    number, page = query["socket"], Page(_ROWS, query["cursor"])
    is_number = number.isdecimal() and len(number) < 16
    return {
        "listed": service.connections.read(page, query["client_id"], query["channel_id"]),
        "chosen": service.connections.find(int(number)) if is_number else None,
    }


async def _trivia(service: Service, query: Query) -> dict[str, Any]:
    """Return the list of extensions with questions, or the questions of one. Raises `BadRequest`."""
    id = query["id"]
    shared = {
        "suggested": suggested(service, Query({**query, "client_id": id or query["client_id"]})),
        "states": [(state.value, state.removeprefix("state-")) for state in State],
    }
    if not id:
        return {**shared, **await listed(service, "trivia", query)}
    key, now = Contest.key(id), service.clock.now()
    documents = await service.engine.documents.read([key], now=now)
    contest = Contest.decoded(documents.get(key))
    return {**shared, "questions": sorted(contest.values(), key=sort_order), "is_missing": not contest}


SCREENS = (
    Screen("clock", "Clock", _clock, every=1.0),
    Screen("links", "Links", lambda service, query: listed(service, "links", query)),
    Screen("namespaces", "Namespaces", _namespaces, every=1.0),
    Screen("pins", "PINs", _pins, every=1.0),
    Screen("purchases", "Purchases", lambda service, query: listed(service, "purchases", query)),
    Screen("sockets", "Sockets", _sockets),
    Screen("trivia", "Trivia", _trivia),
)
