"""Rosters on Redis: a set of members each, and an index of the rosters whose keys differ only in the name."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Key
from emulator.engines.redis.keys import expiry_arg, name_last, name_last_prefix, now_arg, parse_part
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import ROSTERS


class RedisRosters:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        args = (name_last(key), now_arg(now), expiry_arg(expires_at))
        await self._pipeline.run(ROSTERS, b"add_members", *args, *[member.encode() for member in members])

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> set[str]:
        args = (name_last_prefix(key), now_arg(now))
        found = await self._pipeline.run(ROSTERS, b"listing", *args, *[member.encode() for member in members])
        return {parse_part(name) for name in found}

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._pipeline.run(ROSTERS, b"drop", *map(name_last, keys))
