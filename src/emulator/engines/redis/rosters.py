"""Rosters on Redis: a set of names each, and for those that are listed together, which there are."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Key
from emulator.engines.redis.keys import beside_name, by_name, ending, moment, name_of
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import ROSTERS


class RedisRosters:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        names = [member.encode() for member in members]
        await self._pipeline.run(ROSTERS, b"enlist", by_name(key), moment(now), ending(expires_at), *names)

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> set[str]:
        names = [member.encode() for member in members]
        found = await self._pipeline.run(ROSTERS, b"listing", beside_name(key), moment(now), *names)
        return {name_of(name) for name in found}

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._pipeline.run(ROSTERS, b"drop", *map(by_name, keys))
