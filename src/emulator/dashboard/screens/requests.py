"""Requests, socket frames and deliveries: search, and one of them with everything the journal has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from emulator.control.explanations import explain_verdict, explanation_of
from emulator.control.journal.rules import FILTERS, ORDERS
from emulator.control.journal.service import JournalEntry
from emulator.control.journal.snippets import SNIPPET_FORMS, snippet_of
from emulator.core.errors import BadRequest
from emulator.core.journal import DELIVERY, HIDDEN, REQUEST, Entry
from emulator.core.wire.refusals import invalid_parameter
from emulator.core.wire.url import SERVICE
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.screens.faults import effect_of
from emulator.dashboard.timeline import latest_bars, timeline_lanes

_ROWS_PER_PAGE = "50"
_MAX_SORTED = "1000"
"""Entries to read; the slowest are shown."""
_SHORT_FILTER_NAMES = {"client": "client_id", "channel": "channel_id"}
"""Short names of filters in the search."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return a page of the journal, or with `entry`, one entry. A wrong filter is a problem beside the form."""
    typed = {name: query[name] for name in FILTERS if query[name]}
    common = {"given": typed, "problem": "", "entry": None, "rows": ()}
    try:
        filters = parse_filters(query)
        common["given"] = filters
        if not service.journal.is_on:
            return common
        return common | await (_read_entry(service, query) if query["entry"] else _read_page(service, query, filters))
    except BadRequest as error:
        return common | {"given": typed, "problem": error.detail}


async def _read_page(service: Service, query: Query, filters: Mapping[str, str]) -> dict[str, Any]:
    """Return rows, newest or slowest first, and whether there are newer and earlier ones. Raises `BadRequest`."""
    is_slowest = query["sort"] == "slowest"
    wanted = {**filters, "limit": _MAX_SORTED if is_slowest else _ROWS_PER_PAGE}
    if query["after"]:
        page = await service.journals.page({**wanted, "since": query["after"], "order": ORDERS[1]})
        rows, has_newer, has_earlier = page.entries[::-1], page.next is not None, True
    else:
        part = {name: query[name] for name in ("since", "before") if query[name]}
        page = await service.journals.page({**wanted, **part, "order": ORDERS[0]})
        rows, has_newer, has_earlier = page.entries, bool(query["before"]), page.next is not None
    if is_slowest:
        rows = sorted(rows, key=lambda each: each.duration_ms, reverse=True)[: int(_ROWS_PER_PAGE)]
        has_newer = has_earlier = False
    bars = await latest_bars(service, filters)
    return {
        "rows": with_deliveries(rows),
        "newest": max((each.number for each in rows), default=0),
        "oldest": min((each.number for each in rows), default=0),
        "has_newer": has_newer,
        "has_earlier": has_earlier,
        "is_slowest": is_slowest,
        "lanes": timeline_lanes(bars, service.faults.all(), filters),
    }


E = TypeVar("E", Entry, JournalEntry)


def with_deliveries(entries: Iterable[E]) -> list[list[E]]:
    """Return each entry, followed by the deliveries that it caused. Deliveries without it are together, too."""
    rows, latest = list[list[E]](), dict[str, list[E]]()
    for each in entries:
        row = latest.get(each.id) if each.id else None
        if row and each.kind == DELIVERY:
            row.append(each)
        elif row and row[0].kind == DELIVERY:  # delivered after the response
            rows.remove(row)
            row.insert(0, each)
            rows.append(row)
        else:
            latest[each.id] = [each]
            rows.append(latest[each.id])
    return rows


def parse_filters(query: Query) -> dict[str, str]:
    """Return the filters of a query. Words such as `status:4xx` in the search are also filters.

    Raises `BadRequest` for a filter that takes one value and has two of them in the search.
    """
    given = {name: query[name] for name in FILTERS if query[name]}
    words, found = [], dict[str, str]()
    for word in given.pop("search", "").split():
        name, _, value = word.partition(":")
        name = _SHORT_FILTER_NAMES.get(name, name)
        if not value or name not in FILTERS:
            words.append(word)
        elif name == "search":
            words.append(value)
        elif name not in found:
            found[name] = value
        elif FILTERS[name].has_alternatives:
            found[name] += f",{value}"
        elif value != found[name]:
            raise invalid_parameter("search", word, f"a search with one {name}")
    return given | found | ({"search": " ".join(words)} if words else {})


async def _read_entry(service: Service, query: Query) -> dict[str, Any]:
    """Return one entry, and what it caused. Raises `BadRequest` and `NotFound`."""
    found = service.journals.find(query["entry"])
    chain = []
    if found.id:
        page = await service.journals.page({"id": found.id, "order": ORDERS[1], "limit": _ROWS_PER_PAGE})
        # The journal has a delivery before the request that caused it: that is complete only with its response.
        chain = sorted(page.entries, key=lambda each: each.kind == DELIVERY)
    can_replay = found.kind == REQUEST and found.path.startswith(SERVICE)
    entry, acted = service.journals.for_readers(found), service.faults.find(found.fault)
    body = entry.request
    return {
        "entry": entry,
        "chain": chain,
        "acted": acted,
        "effect": effect_of(acted) if acted else "",
        "is_whole": not (body.is_cut or body.is_hidden or body.encoding != "text" or HIDDEN in entry.path),
        "explanation": explanation_of(found),
        "production": explain_verdict(found.production),
        "can_replay": can_replay,
        "snippets": partial(_snippets, found) if can_replay else None,
    }


def _snippets(entry: Entry, url: str) -> dict[str, str]:
    """Return the entry as a command line for curl and extcli, and as a test, for the service at this URL.

    A request without a caller cannot be a test.
    """
    found = {}
    for form in SNIPPET_FORMS:
        with suppress(BadRequest):
            found[form] = snippet_of(entry, form, url)
    return found


SCREENS = (Screen("requests", "Requests", read),)
