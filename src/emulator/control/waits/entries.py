"""Counts the entries of the journal that a condition is about. A repeated count reads new entries only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from emulator.control.waits.refusals import mark_unusable
from emulator.journal import Entry, Journal, no_journal

ANY: Final = "*"
"""The id of a condition about all endpoints."""
_CHUNK: Final = 500
"""Entries looked at before other requests run."""

Matches = Callable[[Entry], bool]
Select = Callable[[Mapping[str, str]], Matches | None]
"""Returns the test for the entries that a query selects; `None` if it selects all. Raises `BadRequest`."""


class EntryCount:
    """Counts entries after a mark that have an endpoint and meet the filters of a query."""

    def __init__(self, journal: Journal, select: Select, query: Mapping[str, str], id: str, since: int | None) -> None:
        """`id` is `POST /v1/e/vote`, its path alone, an action, a topic or `*`.

        Raises `BadRequest` for an unknown one.
        """
        if not journal.is_on:
            raise no_journal()
        if since is not None and since > journal.mark:
            problem = f"is after the latest entry, {journal.mark}; numbers begin again when the service starts"
            raise mark_unusable(since=since, problem=problem)
        self._journal = journal
        self._matches = select(query)
        self._id = id
        self._seen = since or 0
        self._count = 0

    async def count(self) -> int:
        """Count new entries, and return the total so far.

        Entries that the journal dropped before they were counted are missing.
        """
        matches = self._matches
        while entries := self._journal.since(self._seen, _CHUNK):
            self._seen = entries[-1].number
            self._count += sum(1 for entry in entries if self._is_about(entry) and (matches is None or matches(entry)))
            await asyncio.sleep(0)
        return self._count

    def latest(self, limit: int) -> list[Entry]:
        """Return the latest entries of the endpoint, whether they meet the filters or not, oldest first."""
        return list(islice(filter(self._is_about, self._journal.newest()), limit))[::-1]

    def _is_about(self, entry: Entry) -> bool:
        return self._id in (ANY, entry.name, entry.name.partition(" ")[2])
