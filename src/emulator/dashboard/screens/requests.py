"""Requests, socket frames and deliveries: search, and one of them with everything the journal has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from emulator.contract.parity import DIFFER, REFUSE, UNKNOWN
from emulator.control.explanations import explained_verdict, explanation_of
from emulator.control.journal.rules import ANY, FILTERS, KINDS, ORDERS
from emulator.control.journal.snippets import FORMS, snippet_of
from emulator.core.callers import Role
from emulator.core.clock import SECOND
from emulator.core.errors import BadRequest
from emulator.core.journal import DELIVERY, HIDDEN, REQUEST, Entry
from emulator.core.wire.refusals import invalid_parameter
from emulator.core.wire.url import SERVICE
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.screens.faults import effect_of
from emulator.dashboard.texts import instant

BAR = 10 * SECOND
"""What one bar shows, in ms."""
BARS = 30
_HEIGHT = 40.0


class Bar(NamedTuple):
    """The entries of ten seconds."""

    at: str
    """The time at which they begin."""
    requests: int
    """Requests and frames."""
    refused: int
    """How many of them were refused."""
    deliveries: int
    first: int
    """The number of the earliest entry."""
    last: int
    """The number of the latest entry; 0 without one."""

    def parts(self, highest: int) -> list[tuple[str, float, float]]:
        """Return the rectangles of this bar from below: what each shows, its top and its height, of a picture of 40.

        The top is above the lower edge of the picture. `highest` is the number of entries of the highest bar.
        """
        counts = {"refused": self.refused, "requests": self.requests - self.refused, "deliveries": self.deliveries}
        heights = [_HEIGHT * count / highest for count in counts.values()]
        return [part for part in zip(counts, accumulate(heights), heights, strict=True) if part[2]]


class Strip(NamedTuple):
    """The bars of the latest five minutes, oldest first, and their sums."""

    bars: list[Bar]
    highest: int
    """Entries of the highest bar; 0 if there is nothing to see."""
    requests: int
    refused: int
    deliveries: int


def strip_of(newest: Iterable[Entry], now: int) -> Strip:
    """Count the entries of the latest five minutes. They are given newest first; `now` is in Unix ms."""
    start = (now // BAR + 1 - BARS) * BAR
    groups: list[list[Entry]] = [[] for _ in range(BARS)]
    for entry in takewhile(lambda entry: entry.at >= start, newest):
        if entry.at <= now and not entry.is_probe:
            groups[(entry.at - start) // BAR].append(entry)
    bars = [_bar_of(group, start + number * BAR) for number, group in enumerate(groups)]
    sums = [sum(getattr(bar, name) for bar in bars) for name in ("requests", "refused", "deliveries")]
    return Strip(bars, max(map(len, groups)), *sums)


def _bar_of(entries: list[Entry], at: int) -> Bar:
    requests = [entry for entry in entries if entry.kind != DELIVERY]
    refused = sum(bool(entry.reason) for entry in requests)
    first, last = (entries[-1].number, entries[0].number) if entries else (0, 0)
    time = instant(at)[11:19]
    return Bar(time, len(requests), refused, len(entries) - len(requests), first, last)


_ROWS = "100"
_BESIDE = "40"
"""Rows of the list next to one entry."""
_SORTED = "1000"
"""Entries to read; the slowest are shown."""
SLOWEST = "slowest"
"""The value of `sort` for the entries that took longest."""
_COUNTED = 12_000
"""Entries of the journal that the strip counts, at most."""
_WORDS = (
    *(f"status:{each}" for each in ("2xx", "4xx", "5xx", "401", "403", "429")),
    *(f"kind:{each}" for each in KINDS),
    *(f"method:{each}" for each in ("GET", "POST", "PUT", "PATCH", "DELETE")),
    *(f"role:{each}" for each in Role),
    *(f"production:{each}" for each in (ANY, REFUSE, DIFFER, UNKNOWN)),
    "probes:true",
)
"""What the search suggests."""
_SHORT = {"client": "client_id", "channel": "channel_id"}
"""Short names of filters in the search."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return a page of the journal, or with `entry`, one entry."""
    filters = filters_of(query)
    common = {
        "given": filters,
        "chips": [(name, value, {**filters, name: ""}) for name, value in filters.items()],
        "roles": [str(role) for role in Role],
        "entry": None,
        "rows": (),
        "words": _WORDS,
    }
    if not service.journal.is_on:
        return common
    if not query["entry"]:
        strip = strip_of(service.journal.newest(_COUNTED), service.clock.now())
        return common | await _page_of(service, query, filters) | {"strip": strip}
    beside = await service.journals.page({**filters, **_part_of(query), "order": ORDERS[0], "limit": _BESIDE})
    found = service.journals.find(query["entry"])
    chain = []
    if found.id:
        page = await service.journals.page({"id": found.id, "order": ORDERS[1], "limit": _BESIDE})
        # The journal has a delivery before the request that caused it: that is complete only with its response.
        chain = sorted(page.entries, key=lambda each: each.kind == DELIVERY)
    return common | _values_of(service, found) | {"rows": beside.entries, "chain": chain}


async def _page_of(service: Service, query: Query, filters: Mapping[str, str]) -> dict[str, Any]:
    """Return rows, newest or slowest first, and whether there are newer and earlier ones."""
    is_slowest = query["sort"] == SLOWEST
    wanted = {**filters, "limit": _SORTED if is_slowest else _ROWS}
    if query["after"]:
        page = await service.journals.page({**wanted, "since": query["after"], "order": ORDERS[1]})
        rows, has_newer, has_earlier = page.entries[::-1], page.next is not None, True
    else:
        page = await service.journals.page({**wanted, **_part_of(query), "order": ORDERS[0]})
        rows, has_newer, has_earlier = page.entries, bool(query["before"]), page.next is not None
    if is_slowest:
        rows = sorted(rows, key=lambda each: each.duration_ms, reverse=True)[: int(_ROWS)]
        has_newer = has_earlier = False
    return {"rows": rows, "has_newer": has_newer, "has_earlier": has_earlier, "is_slowest": is_slowest}


def _part_of(query: Query) -> dict[str, str]:
    """Return the part of the journal that the address selects."""
    return {name: query[name] for name in ("since", "before") if query[name]}


def filters_of(query: Query) -> dict[str, str]:
    """Return the filters of a query. Words such as `status:4xx` in the search are also filters.

    Raises `BadRequest` for a filter that takes one value and has two of them in the search.
    """
    given = {name: query[name] for name in FILTERS if query[name]}
    words, found = [], dict[str, str]()
    for word in given.pop("search", "").split():
        name, _, value = word.partition(":")
        name = _SHORT.get(name, name)
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


def _values_of(service: Service, found: Entry) -> dict[str, Any]:
    can_replay = found.kind == REQUEST and found.path.startswith(SERVICE)
    entry, acted = service.journals.shown(found), service.faults.find(found.fault)
    body = entry.request
    return {
        "entry": entry,
        "acted": acted,
        "effect": effect_of(acted) if acted else "",
        "is_whole": not (body.is_cut or body.is_hidden or body.encoding != "text" or HIDDEN in entry.path),
        "explanation": explanation_of(found),
        "production": explained_verdict(found.production),
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


SCREENS = (Screen("requests", "Requests", read),)
