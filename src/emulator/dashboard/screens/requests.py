"""Requests, socket frames and deliveries: search, and one of them with everything the journal has."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final

from emulator.callers import Role
from emulator.control.explanations.service import verdict_of
from emulator.control.journal.rules import FILTERS
from emulator.control.journal.snippets import FORMS, snippet_of
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.screens.faults import effect_of
from emulator.errors import BadRequest
from emulator.journal import DELIVERY, FRAME, HIDDEN, REQUEST, Entry

_ROWS: Final = "100"
_SHOWN: Final = (
    "search", "status", "path", "method", "role", "client_id", "channel_id", "kind", "production", "probes",
)  # fmt: skip
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
        return common | _values_of(service, service.journals.find(query["entry"]))
    before = {"before": query["before"]} if query.get("before") else {}
    return common | {"listing": await service.journals.page({**filters, **before, "limit": _ROWS})}


def _values_of(service: Service, found: Entry) -> dict[str, Any]:
    can_replay = found.kind == REQUEST and found.path.startswith("/v1/e/")
    entry, acted = service.journals.shown(found), service.faults.find(found.fault)
    body = entry.request
    return {
        "entry": entry,
        "acted": acted,
        "effect": effect_of(acted) if acted else "",
        "is_whole": not (body.is_cut or body.is_hidden or body.encoding != "text" or HIDDEN in entry.path),
        "explanation": service.explanations.explain(found),
        "production": verdict_of(found.production),
        "can_replay": can_replay,
        "snippets": partial(_snippets, found) if can_replay else None,
    }


def _snippets(entry: Entry, url: str) -> dict[str, str]:
    """Return the entry as a command line for curl and extcli, and as a test, for the service at this URL.

    A request without a caller cannot be a test.
    """
    found = {}
    for form in FORMS:
        with suppress(BadRequest):
            found[form] = snippet_of(entry, form, url)
    return found


SCREEN = Screen("requests", "Requests", read)
