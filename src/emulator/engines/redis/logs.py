"""Logs on Redis. Entries never change, so a reading stops at the newest number when it began."""

from __future__ import annotations

from emulator.engines.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg
from emulator.engines.redis.pipeline import LOGS, Pipeline
from emulator.engines.redis.reading import Position, listing, merged_pages
from emulator.engines.shapes import Item, Key, ListedLog, Span


class RedisLogs:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._pipeline.run(LOGS, b"append", channel_last(key), now_arg(now), expiry_arg(expires_at), value)

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        name, is_all = (channel_last_prefix(key), b"1") if key.channel is None else (channel_last(key), b"0")
        bound, latest, *logs = await self._pipeline.run(LOGS, b"begin", now_arg(now), is_all, name)
        readings = [_Reading(self._pipeline, log, (expiry_arg(since), bound, now_arg(now))) for log in logs]
        return Span(int(latest or 0), merged_pages([reading.fetch for reading in readings], None))

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedLog]:
        found = await listing(self._pipeline, LOGS, group, now=now, limit=limit, after=after, matching=matching)
        return [ListedLog(key, count, int(latest)) for key, (count, latest) in found]


class _Reading:
    """Reads one log, newest first."""

    def __init__(self, pipeline: Pipeline, log: bytes, bounds: tuple[bytes, bytes, bytes]) -> None:
        self._pipeline = pipeline
        self._log = log
        self._start = b"+"
        self._bounds = bounds

    async def fetch(self, size: int) -> tuple[list[tuple[Position, Item]], bool]:
        last, rows = await self._pipeline.run(LOGS, b"page", self._log, self._start, *self._bounds, b"%d" % size)
        self._start = b"(" + last
        return [_item(*row) for row in rows], bool(last)


def _item(position: bytes, value: bytes) -> tuple[Position, Item]:
    at, number = int(position[:16]), int(position[16:])
    return (-at, -number), Item(at, value)
