"""Merges sorted sources page by page, without reading ahead more than needed."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from operator import itemgetter
from typing import Any

PAGE = 500
"""Rows in a page, which SQLite reads in less than a millisecond, and Redis in some."""
_MIN_FETCH = 20
"""Rows to fetch at least from one source, if there are many."""
_AT_ONCE = 50
"""Sources that are read between two returns to the event loop; there may be thousands of them."""

Row = tuple[Any, ...]
"""Sorted by its first two values, which together are unique."""
Fetch = Callable[[int], Awaitable[tuple[list[Row], bool]]]
"""Returns the next rows, possibly none and at most as many as the argument says, and whether there may be more."""

_position = itemgetter(slice(2))


class _Source:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self.rows: list[Row] = []
        """Those that were fetched and not taken."""
        self._has_more = True

    async def fill(self, size: int) -> None:
        while self._has_more and not self.rows:
            self.rows, self._has_more = await self._fetch(size)

    def take(self, until: Row) -> list[Row]:
        count = bisect_right(self.rows, until, key=_position)
        taken, self.rows = self.rows[:count], self.rows[count:]
        return taken


async def merged_pages(fetches: Sequence[Fetch], limit: int) -> AsyncIterator[list[Row]]:
    """Iterate over pages of the rows of all sources, in order and at most `limit`. The event loop runs in between."""
    sources = [_Source(fetch) for fetch in fetches]
    size = min(limit, max(_MIN_FETCH, PAGE // max(1, len(sources))))
    page: list[Row] = []
    while limit > 0:
        empty = [source for source in sources if not source.rows]
        for start in range(0, len(empty), _AT_ONCE):
            await asyncio.gather(*(source.fill(size) for source in empty[start : start + _AT_ONCE]))
        sources = [source for source in sources if source.rows]
        if not sources:
            break
        until = min(_position(source.rows[-1]) for source in sources)  # no row that is not fetched yet is before this
        due = sorted([row for source in sources for row in source.take(until)], key=_position)[:limit]
        limit -= len(due)
        page += due
        while len(page) >= PAGE:
            yield page[:PAGE]
            del page[:PAGE]
            await asyncio.sleep(0)
    if page:
        yield page
