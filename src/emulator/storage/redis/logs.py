"""Logs on Redis. Entries never change, so a reading stops at the newest number when it began."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.core.keys import NEVER, Key
from emulator.storage.merging import Row, merged_pages
from emulator.storage.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg
from emulator.storage.redis.pipeline import LOGS, Pipeline
from emulator.storage.redis.reading import listing
from emulator.storage.shapes import Item, ListedLog, Span


class RedisLogs:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._pipeline.run(LOGS, b"append", channel_last(key), now_arg(now), expiry_arg(expires_at), value)

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        name, is_all = (channel_last_prefix(key), b"1") if key.channel is None else (channel_last(key), b"0")
        bound, latest, *logs = await self._pipeline.run(LOGS, b"begin", now_arg(now), is_all, name)
        readings = [_Reading(self._pipeline, log, (expiry_arg(since), bound, now_arg(now))) for log in logs]
        return Span(int(latest or 0), self._pages(readings))

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedLog]:
        found = await listing(self._pipeline, LOGS, group, now=now, limit=limit, after=after, matching=matching)
        return [ListedLog(key, count, int(latest)) for key, (count, latest) in found]

    async def _pages(self, readings: Sequence[_Reading]) -> AsyncIterator[Sequence[Item]]:
        async for rows in merged_pages([each.fetch for each in readings], NEVER):
            yield [Item(-negative, value) for negative, _, value in rows]


class _Reading:
    """Reads one log, newest first."""

    def __init__(self, pipeline: Pipeline, log: bytes, bounds: tuple[bytes, bytes, bytes]) -> None:
        self._pipeline = pipeline
        self._log = log
        self._start = b"+"
        self._bounds = bounds

    async def fetch(self, size: int) -> tuple[list[Row], bool]:
        last, rows = await self._pipeline.run(LOGS, b"page", self._log, self._start, *self._bounds, b"%d" % size)
        self._start = b"(" + last
        return [(-int(position[:16]), -int(position[16:]), value) for position, value in rows], bool(last)
