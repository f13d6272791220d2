"""Reads many records in pages: listings from their index, and merges of sorted sources."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from emulator.engines.redis.keys import listed_group, listed_range, now_arg, parse_place
from emulator.engines.redis.nodes import Reply
from emulator.engines.redis.pipeline import Pipeline, Script
from emulator.engines.shapes import Key

PAGE = 500
"""Rows in a page, which Redis reads in well below a millisecond."""
MIN_FETCH = 20
"""Rows to fetch at least from one source, if there are many."""

Position = tuple[int, int]
"""The sort key of a row, unique in one merge."""
Row = TypeVar("Row")
Fetch = Callable[[int], Awaitable[tuple[list[tuple[Position, Row]], bool]]]
"""Returns the next rows, possibly none and at most as many as the argument says, and whether there may be more."""


class _Source(Generic[Row]):
    def __init__(self, fetch: Fetch[Row]) -> None:
        self._fetch = fetch
        self.rows: deque[tuple[Position, Row]] = deque()
        self.has_more = True

    async def fill(self, size: int) -> None:
        while self.has_more and not self.rows:
            rows, self.has_more = await self._fetch(size)
            self.rows.extend(rows)


async def merged_pages(fetches: Sequence[Fetch[Row]], limit: int | None) -> AsyncIterator[list[Row]]:
    """Iterate over pages of the rows of all sources, in order and at most `limit`. Sources are fetched concurrently."""
    sources = [_Source(fetch) for fetch in fetches]
    share = max(MIN_FETCH, PAGE // max(1, len(sources)))
    page: list[Row] = []
    remaining = limit
    while remaining is None or remaining > 0:
        await asyncio.gather(*(source.fill(share) for source in sources if not source.rows))
        sources = [source for source in sources if source.rows]
        if not sources:
            break
        free = PAGE - len(page)
        rows = _take_merged_rows(sources, free if remaining is None else min(free, remaining))
        page += rows
        remaining = None if remaining is None else remaining - len(rows)
        if len(page) >= PAGE:
            yield page
            page = []
    if page:
        yield page


def _take_merged_rows(sources: Sequence[_Source[Row]], most: int) -> list[Row]:
    """Return merged rows in order, until one source needs its next page."""
    heap = [(source.rows[0][0], index) for index, source in enumerate(sources)]
    heapq.heapify(heap)
    taken: list[Row] = []
    while len(taken) < most:
        _, index = heap[0]
        source = sources[index]
        taken.append(source.rows.popleft()[1])
        if not source.rows:
            break
        heapq.heapreplace(heap, (source.rows[0][0], index))
    return taken


STEP = 50
"""Things that one script call looks at."""


async def listing(
    pipeline: Pipeline, script: Script, group: Key, *, now: int, limit: int, after: Key | None, matching: str
) -> list[tuple[Key, list[Reply]]]:
    """Return up to `limit` keys after `after`, each with the result of the script's `describe`."""
    found: list[tuple[Key, list[Reply]]] = []
    first, last = listed_range(group, after)
    while len(found) < limit:
        most = STEP if matching else min(STEP, limit - len(found))
        args = (listed_group(group), first, last, now_arg(now), b"%d" % most, matching.encode())
        place, *rows = await pipeline.run(script, b"listing", *args)
        found += [(parse_place(group, row[0]), row[1:]) for row in rows]
        if not place:
            break
        first = b"(" + place
    return found[:limit]
