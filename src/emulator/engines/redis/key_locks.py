"""Turns of those in this process who would write the same things, as of all who try at once only one can succeed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from emulator.errors import EngineError

_ATTEMPTS = 200
_AT_ONCE = 3
_LONGEST_PAUSE = 0.02


async def attempts() -> AsyncIterator[int]:
    """Counts tries to write what other processes write too; after very many of them, raises EngineError."""
    for count in range(_ATTEMPTS):
        yield count
        if count >= _AT_ONCE:  # not all at the same moment again
            await asyncio.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.001 * count)))
    raise EngineError(f"others wrote the same things each of {_ATTEMPTS} times")


class KeyLocks:
    def __init__(self) -> None:
        self._locks: dict[bytes, asyncio.Lock] = {}
        self._users: dict[bytes, int] = {}

    @asynccontextmanager
    async def turn(self, names: Iterable[bytes]) -> AsyncIterator[None]:
        """Lasts while nobody else of this process has a turn for any of these names."""
        async with AsyncExitStack() as stack:
            for name in sorted(set(names)):  # in one order, so that no two wait for each other
                await stack.enter_async_context(self._alone(name))
            yield

    @asynccontextmanager
    async def _alone(self, name: bytes) -> AsyncIterator[None]:
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] = self._users.get(name, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]
