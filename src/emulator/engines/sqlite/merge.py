"""Merges sorted sources page by page, without reading ahead more than needed."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from emulator.engines.sqlite.connection import engine_errors

PAGE = 500
"""Rows between two returns to the event loop: well below a millisecond."""

Row = tuple[Any, ...]
"""Sorted by its first two values, which together are unique."""

Source = Callable[[int], list[Row]]
"""Returns the next rows, at most as many as the argument says; fewer only at the end."""

_STARTED_AT_ONCE = 50
"""Sources whose first rows are read between two returns to the event loop; there may be thousands of them."""


async def merged(sources: Sequence[Source], limit: int) -> AsyncIterator[list[Row]]:
    """Iterate over pages of the rows of all sources, in order and at most `limit`. The event loop runs in between."""
    merge = _Merge(sources)
    for first in range(0, len(sources), _STARTED_AT_ONCE):
        with engine_errors():
            merge.start(range(first, min(first + _STARTED_AT_ONCE, len(sources))))
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
