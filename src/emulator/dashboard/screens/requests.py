"""Requests, socket frames and deliveries: search, and one of them with everything the journal has."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final

from emulator.callers import Role
from emulator.control.explanations.service import verdict_of
from emulator.control.journal.rules import FILTERS, ORDERS
from emulator.control.journal.snippets import FORMS, snippet_of
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.screens.faults import effect_of
from emulator.errors import BadRequest
from emulator.journal import HIDDEN, REQUEST, Entry
from emulator.wire.url import SERVICE

_ROWS: Final = "100"
_BESIDE: Final = "40"
"""Rows beside one entry."""
_SHORT: Final = {"client": "client_id", "channel": "channel_id"}
"""Short names of filters in the search."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return a page of the journal, or with `entry`, one entry."""
    filters = filters_of(query)
    common = {
        "given": filters,
        "chips": [(name, value, {**filters, name: ""}) for name, value in filters.items()],
        "roles": [str(role) for role in Role],
        "journal": service.journal,
        "entry": None,
        "listing": None,
    }
    if not service.journal.is_on:
        return common
    before = {"before": query["before"]} if query.get("before") else {}
    listing = await service.journals.page({**filters, **before, "limit": _BESIDE if query.get("entry") else _ROWS})
    if not query.get("entry"):
        return common | {"listing": listing}
    found = service.journals.find(query["entry"])
    chain = await service.journals.page({"id": found.id, "order": ORDERS[1], "limit": _BESIDE}) if found.id else None
    return common | _values_of(service, found) | {"listing": listing, "chain": chain.entries if chain else []}


def filters_of(query: Query) -> dict[str, str]:
    """Return the filters of a query. Words such as `status:4xx` in the search are also filters."""
    found = {name: query[name] for name in FILTERS if query.get(name)}
    words = []
    for word in found.pop("search", "").split():
        name, _, value = word.partition(":")
        name = _SHORT.get(name, name)
        if value and name in FILTERS:
            found[name] = value
        else:
            words.append(word)
    return found | ({"search": " ".join(words)} if words else {})


def _values_of(service: Service, found: Entry) -> dict[str, Any]:
    can_replay = found.kind == REQUEST and found.path.startswith(SERVICE)
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
