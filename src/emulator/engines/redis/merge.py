"""Several sorted readings taken as one, a page at a time."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, TypeVar

PAGE = 500
"""Rows of a page: for Redis well below a millisecond."""
LEAST = 20
"""Rows that a reading is asked for where there are many."""

Position = tuple[int, int]
"""What rows are sorted by; no two rows of one merge have the same."""
Row = TypeVar("Row")
Fetch = Callable[[int], Awaitable[tuple[list[tuple[Position, Row]], bool]]]
"""The next rows, at most so many, which may be none; and whether there may be more."""


class _Source(Generic[Row]):
    def __init__(self, fetch: Fetch[Row]) -> None:
        self._fetch = fetch
        self.rows: deque[tuple[Position, Row]] = deque()
        self.has_more = True

    async def fill(self, size: int) -> None:
        while self.has_more and not self.rows:
            rows, self.has_more = await self._fetch(size)
            self.rows.extend(rows)


async def merged(fetches: Sequence[Fetch[Row]], limit: int | None) -> AsyncIterator[list[Row]]:
    """The rows of all in order, at most `limit`; all that have to be asked are asked at once."""
    sources = [_Source(fetch) for fetch in fetches]
    share = max(LEAST, PAGE // max(1, len(sources)))
    page: list[Row] = []
    left = limit
    while left is None or left > 0:
        await asyncio.gather(*(source.fill(share) for source in sources if not source.rows))
        sources = [source for source in sources if source.rows]
        if not sources:
            break
        room = PAGE - len(page) if left is None else min(PAGE - len(page), left)
        some = _taken(sources, room)
        page += some
        left = None if left is None else left - len(some)
        if len(page) >= PAGE:
            yield page
            page = []
    if page:
        yield page


def _taken(sources: Sequence[_Source[Row]], most: int) -> list[Row]:
    """Rows in order, up to where one source has to be asked for more."""
    heads = [(source.rows[0][0], index) for index, source in enumerate(sources)]
    heapq.heapify(heads)
    taken: list[Row] = []
    while len(taken) < most:
        _, index = heads[0]
        source = sources[index]
        taken.append(source.rows.popleft()[1])
        if not source.rows:
            break
        heapq.heapreplace(heads, (source.rows[0][0], index))
    return taken
