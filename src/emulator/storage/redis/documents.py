"""Documents on Redis: one hash each. Updates are optimistic: read, change here, write if the versions are the same.

`KeyLocks` keeps updates of one process from making each other fail.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.redis.keys import expiry_arg, now_arg, user_last, user_last_prefix
from emulator.storage.redis.pipeline import DOCUMENTS, Pipeline
from emulator.storage.shapes import Edit, Kept, writes_of_change

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


_ABSENT = b"0"
"""The version of a document that does not exist."""


class RedisDocuments:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._key_locks = KeyLocks()

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        found = await self._pipeline.run(DOCUMENTS, b"read", now_arg(now), *map(user_last, keys))
        return {key: one[1] for key, one in zip(keys, found, strict=True) if one is not None}

    async def peek(self, key: Key, *, now: int) -> bytes | None:
        (found,) = await self._pipeline.join(DOCUMENTS, b"peek", [(now_arg(now), user_last(key))])
        return None if found is None else bytes(found)

    async def update(
        self, keys: Sequence[Key], change: Edit, *, now: int, expires_at: int, may_end_earlier: bool = False
    ) -> dict[Key, bytes]:
        names = {key: user_last(key) for key in keys}
        async with self._key_locks.hold(names.values()):
            found = await self._pipeline.run(DOCUMENTS, b"read", now_arg(now), *names.values())
            async for _ in attempts():
                live = {key: one for key, one in zip(names, found, strict=True) if one is not None}
                written = writes_of_change(change, {key: value for key, (_, value) in live.items()}, keys)
                if not written:
                    break
                args = [b"write", now_arg(now), expiry_arg(expires_at), b"%d" % may_end_earlier, b"%d" % len(names)]
                for key, name in names.items():
                    args += (name, live[key][0] if key in live else _ABSENT)
                for key, value in written.items():
                    args += (names[key], value)
                found = await self._pipeline.run(DOCUMENTS, *args)
                if found is None:
                    break
        return written

    async def keep(self, documents: Mapping[Key, bytes], *, replace: bool, now: int, expires_at: int) -> Kept:
        times = now_arg(now), expiry_arg(expires_at)
        rows = [(*times, b"%d" % replace, user_last(key), value) for key, value in documents.items()]
        reply = self._pipeline.join(DOCUMENTS, b"keep", rows)
        if replace:
            return Kept({}, reply)
        found = zip(documents, await reply, strict=True)
        return Kept({key: bytes(value) for key, value in found if value is not None})

    async def users(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        args = (now_arg(now), user_last_prefix(key), after.encode(), b"%d" % limit)
        return [user.decode() for user in await self._pipeline.run(DOCUMENTS, b"users", *args)]

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        names = [user_last(key) for key in keys]
        return int(await self._pipeline.run(DOCUMENTS, b"drop", now_arg(now), *names))

    async def drop_equal(self, key: Key, value: bytes, *, now: int) -> None:
        await self._pipeline.run(DOCUMENTS, b"drop_equal", now_arg(now), user_last(key), value)
