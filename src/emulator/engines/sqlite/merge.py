"""Merges sorted sources page by page, without reading ahead more than needed."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
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


async def merged_pages(sources: Sequence[Source], limit: int) -> AsyncIterator[list[Row]]:
    """Iterate over pages of the rows of all sources, in order and at most `limit`. The event loop runs in between."""
    read = sources[0] if len(sources) == 1 else await _merge(sources)
    while limit > 0:
        with engine_errors():
            rows = read(min(PAGE, limit))
        if not rows:
            return
        limit -= len(rows)
        yield rows
        await asyncio.sleep(0)


async def _merge(sources: Sequence[Source]) -> Source:
    size = max(20, PAGE // max(1, len(sources)))
    iterators = []
    for count, source in enumerate(sources, 1):
        with engine_errors():
            iterators.append(_iterate(source(size), source, size))
        if count % _STARTED_AT_ONCE == 0:
            await asyncio.sleep(0)
    rows = heapq.merge(*iterators, key=itemgetter(0, 1))
    return lambda most: list(islice(rows, most))


def _iterate(rows: list[Row], source: Source, size: int) -> Iterator[Row]:
    while rows:
        yield from rows
        rows = source(size)
