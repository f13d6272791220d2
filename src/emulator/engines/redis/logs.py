"""Logs on Redis. Entries never change, so a reading is bound by the number at its start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.engines.base import Item, Key, Span
from emulator.engines.redis.keys import beside_channel, by_channel, ending, moment
from emulator.engines.redis.merge import Position, merged
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import LOGS


class RedisLogs:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._pipeline.run(LOGS, b"append", by_channel(key), moment(now), ending(expires_at), value)

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        name, is_all = (beside_channel(key), b"1") if key.channel is None else (by_channel(key), b"0")
        bound, latest, *logs = await self._pipeline.run(LOGS, b"begin", moment(now), is_all, name)
        readings = [_Reading(self._pipeline, log, (ending(since), bound, moment(now))) for log in logs]
        return Span(int(latest or 0), _pages(readings))


async def _pages(readings: Sequence[_Reading]) -> AsyncIterator[Sequence[Item]]:
    async for page in merged([reading.fetch for reading in readings], None):
        yield page


class _Reading:
    """One log, newest first."""

    def __init__(self, pipeline: Pipeline, log: bytes, bounds: tuple[bytes, bytes, bytes]) -> None:
        self._pipeline = pipeline
        self._log = log
        self._from = b"+"
        self._bounds = bounds

    async def fetch(self, size: int) -> tuple[list[tuple[Position, Item]], bool]:
        reached, rows = await self._pipeline.run(LOGS, b"page", self._log, self._from, *self._bounds, b"%d" % size)
        self._from = b"(" + reached
        return [_item(*row) for row in rows], bool(reached)


def _item(position: bytes, value: bytes) -> tuple[Position, Item]:
    at, number = int(position[:16]), int(position[16:])
    return (-at, -number), Item(at, value)
