"""Reads the journal: pages of it, one entry, and a stream."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec import Struct

from emulator.clock import monotonic
from emulator.control.journal import rules
from emulator.control.journal.entries import Explanation, JournalEntry, shown
from emulator.control.journal.refusals import no_entry
from emulator.control.journal.rules import Matches
from emulator.control.journal.snippets import snippet_of
from emulator.ids import token_id
from emulator.journal import DELIVERY, Entry, Journal, no_journal

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


class _Mark(Struct):
    mark: int
    run: str


class _Lost(Struct):
    lost: int
    mark: int


@dataclass(eq=False, repr=False)
class Journals:
    """The journal of one service, for readers."""

    _journal: Journal
    _namespace: str
    _explain: Callable[[Entry], Explanation | None] = lambda _: None
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
        found: list[Entry] = []
        position = before if page.newest_first else since + 1
        while True:
            entries = (
                journal.until(position - 1, _STEP, after=since)
                if page.newest_first
                else journal.since(position - 1, _STEP, before=before)
            )
            if not entries:
                return Listing(list(map(self.shown, found)), mark, lost, None, self._run)
            for entry in entries:
                if matches is None or matches(entry):
                    if len(found) == page.limit:
                        return Listing(list(map(self.shown, found)), mark, lost, found[-1].number, self._run)
                    found.append(entry)
            position = entries[-1].number if page.newest_first else entries[-1].number + 1
            await asyncio.sleep(0)

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

    def entry(self, query: Mapping[str, str]) -> JournalEntry:
        """Return one entry. Raises `NotFound`."""
        rules.check_names(query, "id")
        return self.shown(self.find(query.get("id", "")))

    def snippet(self, query: Mapping[str, str]) -> str:
        """Return one entry as a line for a shell or as a test. Raises `NotFound`, and `BadRequest` if it has none."""
        rules.check_names(query, "id", "as", "url")
        return snippet_of(self.find(query.get("id", "")), query.get("as", ""), query.get("url", ""))

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

    async def _lines(self, mark: int, matches: Matches | None, deadline: float) -> AsyncIterator[bytes]:
        journal, encode = self._journal, msgspec.json.encode
        if mark > journal.mark:  # of an earlier run of the service
            mark = 0
        yield encode(_Mark(mark, self._run)) + b"\n"
        with journal.watching() as changed:
            while True:
                changed.clear()
                while mark < journal.mark:
                    lines = []
                    if lost := journal.lost_since(mark):
                        mark += lost
                        lines.append(encode(_Lost(lost, mark)))
                    for entry in journal.since(mark, _CHUNK):
                        mark = entry.number
                        if matches is None or matches(entry):
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
                    yield encode(_Mark(mark, self._run)) + b"\n"

    def shown(self, entry: Entry) -> JournalEntry:
        """Return an entry for readers, with its explanation."""
        return shown(entry, self._namespace, self._explain(entry))

    def _check(self) -> None:
        if not self._journal.is_on:
            raise no_journal()
