"""Reads the journal: pages of it, one entry, and a stream. Its own responses are not recorded."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec import Struct

from emulator.control.explanations import explanation_of
from emulator.control.journal import rules
from emulator.control.journal.entries import JournalEntry, shown
from emulator.control.journal.rules import DEFAULT_LIMIT, MAX_LIMIT, Matches
from emulator.control.journal.snippets import DEFAULT_URL, FORMS, snippet_of
from emulator.core.clock import monotonic
from emulator.core.errors import Facts, NotFound, refusal
from emulator.core.ids import token_id
from emulator.core.journal import DELIVERY, Entry, Journal, no_journal
from emulator.http.endpoint import Audience, Call, JsonLines, Parameter, Streamed, Text, endpoint


@refusal(NotFound, "No such entry", "docs: Journal", "The journal has no such entry",
         "List what it has: `extcli logs`.")  # fmt: skip
def no_entry(*, id: str) -> Facts:
    detail = f"id: the journal has no {id!r}; it may be too old, or from before a reset or restart"
    return Facts(detail, f"id {id!r}", "an entry that the journal still keeps")


LATEST: Final = "latest"
"""As an id: the latest entry."""
HEARTBEAT: Final = 15.0
"""Seconds without an entry after which the stream sends its mark."""
_INTERVAL: Final = 0.02
"""Seconds in which entries are collected for one chunk of the stream."""
_CHUNK: Final = 200
"""Entries looked at for one chunk of the stream, before other requests run."""
_STEP: Final = 500
"""Entries looked at before other requests run."""


class Listing(Struct):
    """The response with a page of the journal."""

    entries: list[JournalEntry]
    mark: int
    """The number of the latest entry, for `since`."""
    lost: int
    """Entries after `since` that the journal no longer keeps."""
    next: int | None
    """`before` of the next page, or with `order=oldest`, its `since`. `null` if there is none."""
    run: str
    """Names the run of the service: after a restart it is another one, and numbers start again."""


@dataclass(eq=False, repr=False)
class Journals:
    """The journal of one service, for readers."""

    _journal: Journal
    _namespace: str
    _run: str = field(default_factory=token_id)
    """Tells readers whether their marks are of this run of the service."""

    async def page(self, query: Mapping[str, str]) -> Listing:
        """Return the entries that a query selects. Raises `BadRequest`, and `Forbidden` if there is no journal."""
        self._check()
        rules.check_names(query, *rules.FILTERS, *rules.PAGING)
        page, matches = rules.page_of(query), rules.matches_of(query)
        journal = self._journal
        since, mark = page.since or 0, journal.mark
        before = mark + 1 if page.before is None else min(page.before, mark + 1)
        lost = 0 if page.since is None else journal.lost_since(page.since)
        entries = journal.newest(max(0, mark - since))[mark + 1 - before :]
        if not page.newest_first:
            entries.reverse()
        found, more = list[Entry](), None
        for position, entry in enumerate(entries, 1):
            if matches(entry):
                if len(found) == page.limit:
                    more = found[-1].number
                    break
                found.append(entry)
            if position % _STEP == 0:
                await asyncio.sleep(0)
        return Listing(list(map(self.shown, found)), mark, lost, more, self._run)

    def find(self, id: str) -> Entry:
        """Return the entry with this request id or number, a delivery only by number, or the latest.

        Raises `NotFound`.
        """
        self._check()
        journal = self._journal
        for entry in journal.newest():
            if (id == LATEST and not entry.is_probe) or (entry.id == id and entry.kind != DELIVERY):
                return entry
        if id.isdecimal() and len(id) < 16:
            for entry in journal.since(int(id) - 1, 1, before=int(id) + 1):
                return entry
        raise no_entry(id=id[:64])

    def stream(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Return JSON lines: the current position, then each entry after `since`; by default, only new entries.

        Raises `BadRequest`, and `Forbidden` if there is no journal.
        A slow reader uses no memory: the stream continues after its last entry, and reports how many were lost.
        """
        self._check()
        rules.check_names(query, *rules.FILTERS, "since", "timeout")
        since, timeout = rules.number_of(query, "since"), rules.number_of(query, "timeout")
        deadline = math.inf if timeout is None else monotonic() + timeout / 1_000
        return self._lines(self._journal.mark if since is None else since, rules.matches_of(query), deadline)

    async def _lines(self, mark: int, matches: Matches, deadline: float) -> AsyncIterator[bytes]:
        journal, encode = self._journal, msgspec.json.encode
        if mark > journal.mark:  # of an earlier run of the service
            mark = 0
        yield encode({"mark": mark, "run": self._run}) + b"\n"
        with journal.watching() as changed:
            while True:
                changed.clear()
                while mark < journal.mark:
                    lines = []
                    if lost := journal.lost_since(mark):
                        mark += lost
                        lines.append(encode({"lost": lost, "mark": mark}))
                    for entry in journal.since(mark, _CHUNK):
                        mark = entry.number
                        if matches(entry):
                            lines.append(encode(self.shown(entry)))
                    if lines:
                        lines.append(b"")
                        yield b"\n".join(lines)
                    await asyncio.sleep(0)
                left = deadline - monotonic()
                if left <= 0:
                    return
                try:
                    async with asyncio.timeout(min(HEARTBEAT, left)):
                        await changed.wait()
                    await asyncio.sleep(_INTERVAL)
                except TimeoutError:
                    yield encode({"mark": mark, "run": self._run}) + b"\n"

    def shown(self, entry: Entry) -> JournalEntry:
        """Return an entry for readers, with its explanation."""
        return shown(entry, self._namespace, explanation_of(entry))

    def _check(self) -> None:
        if not self._journal.is_on:
            raise no_journal()


_SINCE = Parameter("since", "A number: only later entries.", "integer")
_TIMEOUT = Parameter("timeout", "Real ms after which the stream ends; it stays open when absent.", "integer")
_FILTERS = tuple(Parameter(name, each.meaning) for name, each in rules.FILTERS.items())
_PAGE = (
    _SINCE,
    Parameter("before", "A number: only earlier entries.", "integer"),
    Parameter("limit", f"At most this many, 1 to {MAX_LIMIT:,}; {DEFAULT_LIMIT} when absent.", "integer"),
    Parameter("order", "`newest` or `oldest` first. When absent: oldest first with `since`, otherwise newest first."),
)
_JSON_LINES = "application/x-ndjson"


@endpoint(
    "GET", "/_emulator/journal", audience=Audience.CONTROL, query=(*_FILTERS, *_PAGE), answer=Listing, is_recorded=False
)
async def read_journal(journals: Journals, call: Call) -> Listing:
    """Read the latest requests, socket frames and deliveries."""
    return await journals.page(call.query)


@endpoint(
    "GET",
    "/_emulator/journal/entry",
    audience=Audience.CONTROL,
    query=(
        Parameter("id", "A request id, the number of an entry, or `latest`, which is never a probe."),
        Parameter("as", f"{', '.join(FORMS)}: the response is this text instead."),
        Parameter("url", f"With `as`: the base URL of the service; {DEFAULT_URL} when absent."),
    ),
    answer=JournalEntry,
    is_recorded=False,
)
async def read_journal_entry(journals: Journals, call: Call) -> JournalEntry | Text:
    """Read one entry, or write it as a line for a shell or as a test. Such a text has no token and no secret."""
    form = call.text("as")
    rules.check_names(call.query, *(("id", "as", "url") if form else ("id",)))
    entry = journals.find(call.text("id"))
    if form:
        return Text(snippet_of(entry, form, call.text("url")).encode(), "text/plain")
    return journals.shown(entry)


@endpoint(
    "GET",
    "/_emulator/journal/stream",
    audience=Audience.CONTROL,
    query=(*_FILTERS, _SINCE, _TIMEOUT),
    answer=JsonLines,
    held=True,
    is_recorded=False,
)
async def follow_journal(journals: Journals, call: Call) -> Streamed:
    """Follow the journal: JSON lines, held open, each an entry as in `GET /_emulator/journal`.

    The line `{"mark": 12, "run": "…"}` states the position of the stream: at its start, and after 15 seconds without an
    entry. The line `{"lost": 3, "mark": 15}` says that three entries were dropped before the stream reached them.
    To resume, pass the last number as `since`; if `run` is another one, the service was restarted, and numbers began
    again.
    """
    return Streamed(journals.stream(call.query), _JSON_LINES)


endpoints: Final = (read_journal, read_journal_entry, follow_journal)
