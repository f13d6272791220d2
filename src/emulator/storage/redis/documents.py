"""Documents on Redis: one hash each. Updates are optimistic: read, change here, write if the versions are the same.

`KeyLocks` keeps updates of one process from making each other fail.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.redis.client import Client
from emulator.storage.redis.keys import USER_LAST, found_by_key
from emulator.storage.shapes import Edit, KeptDocuments, Texts, writes_of_change

_ATTEMPTS = 200
_MAX_PAUSE = 0.02


async def update_attempts() -> AsyncIterator[int]:
    """Count attempts at an update that another process may invalidate, with pauses. Raises `EngineError` after 200."""
    for count in range(_ATTEMPTS):
        yield count
        await asyncio.sleep(random.uniform(0, min(_MAX_PAUSE, 0.001 * count)))
    raise EngineError(f"gave up after {_ATTEMPTS} attempts: other processes kept changing the same data")


class KeyLocks:
    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        """The locks that are held or waited for."""

    @asynccontextmanager
    async def hold_locks(self, keys: Iterable[Key]) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys)):  # in one order, to avoid deadlocks
                await stack.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
            yield


_ABSENT = b"0"
"""The version of a document that does not exist."""


class RedisDocuments:
    def __init__(self, client: Client) -> None:
        self._script = client.script("documents")
        self._key_locks = KeyLocks()

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        found = await self._script.run("read", keys, now)
        return {key: value for key, (_, value) in found_by_key(keys, found).items()}

    async def peek(self, key: Key, *, now: int) -> bytes | None:
        return (await self.read([key], now=now)).get(key)

    async def update(
        self, keys: Sequence[Key], change: Edit, *, now: int, expires_at: int, may_end_earlier: bool = False
    ) -> dict[Key, bytes]:
        async with self._key_locks.hold_locks(keys):
            found = await self._script.run("read", keys, now)
            async for _ in update_attempts():
                live = found_by_key(keys, found)
                written = writes_of_change(change, {key: value for key, (_, value) in live.items()}, keys)
                if not written:
                    break
                versions = [live[key][0] if key in live else _ABSENT for key in keys]
                args = keys, versions, written.items(), expires_at, may_end_earlier, now
                found = await self._script.run("write", *args)
                if found is None:
                    break
        return written

    async def keep(self, documents: Texts, *, replace: bool, now: int, expires_at: int) -> KeptDocuments:
        reply = self._script.start("keep", documents.items(), replace, expires_at, now).result
        if replace:
            return KeptDocuments({}, reply)
        return KeptDocuments(found_by_key(documents, await reply))

    async def users(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        found = await self._script.run("users", USER_LAST.group(key), after, limit, now)
        return [user.decode() for user in found]

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        return int(await self._script.run("drop", keys, now))

    async def drop_equal(self, key: Key, value: bytes, *, now: int) -> None:
        await self._script.run("drop_equal", key, value, now)
