"""Documents on Redis: a hash each. An update reads, changes here, and writes if nobody else has written meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Change, Key
from emulator.engines.redis.key_locks import KeyLocks, attempts
from emulator.engines.redis.keys import beside_user, by_user, ending, moment
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import DOCUMENTS

_ABSENT = b"0"
"""The version of what is not there."""


class RedisDocuments:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._key_locks = KeyLocks()

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        found = await self._pipeline.run(DOCUMENTS, b"read", moment(now), *map(by_user, keys))
        return {key: one[1] for key, one in zip(keys, found, strict=True) if one is not None}

    async def update(self, keys: Sequence[Key], change: Change, *, now: int, expires_at: int) -> dict[Key, bytes]:
        names = {key: by_user(key) for key in keys}
        async with self._key_locks.turn(names.values()):
            found = await self._pipeline.run(DOCUMENTS, b"read", moment(now), *names.values())
            async for _ in attempts():
                live = {key: one for key, one in zip(names, found, strict=True) if one is not None}
                written = dict(change({key: value for key, (_, value) in live.items()}))
                if strangers := written.keys() - names.keys():
                    raise ValueError(f"a change may only write the keys it was given, not {strangers}")
                if not written:
                    break
                args = [b"write", moment(now), ending(expires_at), b"%d" % len(names)]
                for key, name in names.items():
                    args += (name, live[key][0] if key in live else _ABSENT)
                for key, value in written.items():
                    args += (names[key], value)
                found = await self._pipeline.run(DOCUMENTS, *args)
                if found is None:
                    break
        return written

    async def users(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        args = (moment(now), beside_user(key), after.encode(), b"%d" % limit)
        return [user.decode() for user in await self._pipeline.run(DOCUMENTS, b"holders", *args)]

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        names = [by_user(key) for key in keys]
        return int(await self._pipeline.run(DOCUMENTS, b"drop", moment(now), *names))
