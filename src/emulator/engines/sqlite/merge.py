"""Several sorted sources read as one, a page at a time and without asking more of a source than is needed."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from emulator.engines.sqlite.connection import engine_errors

PAGE = 500
"""Rows between two returns to the event loop: well below a millisecond."""

Row = tuple[Any, ...]
"""Sorted by its first two values, which no other row has."""

Source = Callable[[int], list[Row]]
"""The next rows of a sorted reading, at most so many; fewer only at its end."""

# Sources are asked for their first rows a few at a time, so that thousands of them are not one long step.
STARTED_AT_ONCE = 50


async def merged(sources: Sequence[Source], limit: int) -> AsyncIterator[list[Row]]:
    """The rows of all sources in order, at most `limit`, in pages; the event loop has its turn between them."""
    merge = _Merge(sources)
    for first in range(0, len(sources), STARTED_AT_ONCE):
        with engine_errors():
            merge.start(range(first, min(first + STARTED_AT_ONCE, len(sources))))
        await asyncio.sleep(0)
    while limit > 0:
        with engine_errors():
            rows = merge.page(min(PAGE, limit))
        if not rows:
            return
        limit -= len(rows)
        yield rows
        await asyncio.sleep(0)


class _Merge:
    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._share = max(20, PAGE // max(1, len(sources)))
        self._waiting: list[list[Row]] = [[] for _ in sources]
        self._heap: list[tuple[Any, Any, int, Row]] = []

    def start(self, indices: range) -> None:
        if len(self._sources) > 1:
            for index in indices:
                self._refill(index)

    def page(self, size: int) -> list[Row]:
        if len(self._sources) == 1:
            return self._sources[0](size)
        rows: list[Row] = []
        while self._heap and len(rows) < size:
            _, _, index, row = heapq.heappop(self._heap)
            rows.append(row)
            self._refill(index)
        return rows

    def _refill(self, index: int) -> None:
        waiting = self._waiting[index]
        if not waiting:
            waiting.extend(reversed(self._sources[index](self._share)))
        if waiting:
            row = waiting.pop()
            heapq.heappush(self._heap, (row[0], row[1], index, row))
