"""Merges sorted sources page by page, without reading ahead more than needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from emulator.core.keys import NEVER
from emulator.storage.shapes import LogEntry

PAGE_SIZE = 500
"""Rows in a page, which SQLite reads in less than a millisecond, and Redis in some."""
_MIN_FETCH = 20
"""Rows to fetch at least from one source, if there are many."""

Row = tuple[Any, ...]
"""Sorted by its first two values, which together are unique."""
FetchRows = Callable[[int], Awaitable[tuple[list[Row], bool]]]
"""Returns the next rows, possibly none and at most as many as the argument says, and whether there may be more."""


async def _iterate_rows(fetch: FetchRows, size: int) -> AsyncIterator[Row]:
    has_more = True
    while has_more:
        rows, has_more = await fetch(size)
        for row in rows:
            yield row


async def merged_pages(fetches: Sequence[FetchRows], limit: int | None = None) -> AsyncIterator[list[Row]]:
    """Iterate over pages of the rows of all sources, in order and at most `limit`. The event loop runs in between."""
    left = NEVER if limit is None else limit
    size = min(left, max(_MIN_FETCH, PAGE_SIZE // max(1, len(fetches))))
    sources = [_iterate_rows(fetch, size) for fetch in fetches] if left > 0 else []
    firsts = await asyncio.gather(*(anext(source, None) for source in sources))
    nexts = [(row, at) for at, row in enumerate(firsts) if row is not None]
    heapify(nexts)
    page: list[Row] = []
    while nexts and left > 0:
        row, at = heappop(nexts)
        page.append(row)
        left -= 1
        following = await anext(sources[at], None)
        if following is not None:
            heappush(nexts, (following, at))
        if len(page) == PAGE_SIZE:
            yield page
            page = []
            await asyncio.sleep(0)
    if page:
        yield page


async def merged_items(fetches: Sequence[FetchRows]) -> AsyncIterator[list[LogEntry]]:
    """Iterate over pages of the items of logs. Their rows are the time and a number, both negative, and the value."""
    async for rows in merged_pages(fetches):
        yield [LogEntry(-negative, value) for negative, _, value in rows]
