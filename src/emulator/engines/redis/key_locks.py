"""Locks by key, so that optimistic updates of one process do not make each other fail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from emulator.errors import EngineError

_ATTEMPTS = 200
_WITHOUT_PAUSE = 3
_MAX_PAUSE = 0.02


async def attempts() -> AsyncIterator[int]:
    """Count attempts at an update that another process may invalidate, with pauses. Raises `EngineError` after 200."""
    for count in range(_ATTEMPTS):
        yield count
        if count >= _WITHOUT_PAUSE:
            await asyncio.sleep(random.uniform(0, min(_MAX_PAUSE, 0.001 * count)))
    raise EngineError(f"other processes changed the same data during all {_ATTEMPTS} attempts")


class KeyLocks:
    def __init__(self) -> None:
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        """The locks that are held or waited for."""

    @asynccontextmanager
    async def hold(self, names: Iterable[bytes]) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for name in sorted(set(names)):  # in one order, to avoid deadlocks
                await stack.enter_async_context(self._locks.setdefault(name, asyncio.Lock()))
            yield
