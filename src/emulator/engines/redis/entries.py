"""Reads a ballot's entries while voting goes on.

Redis keeps the entries that are replaced during a reading, so it sees the ballot as it was at the start.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from emulator.engines.base import Entry, Key
from emulator.engines.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg
from emulator.engines.redis.merge import Position, merged
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import ENTRIES
from emulator.errors import EngineError


class Readings:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def entries(self, key: Key, now: int, since: int, limit: int | None) -> AsyncIterator[Sequence[Entry]]:
        reading = uuid.uuid4().bytes
        name, is_all = (channel_last_prefix(key), b"1") if key.channel is None else (channel_last(key), b"0")
        bound, *ids = await self._pipeline.run(ENTRIES, b"begin", reading, now_arg(now), is_all, name)
        try:
            sources = [_Reading(self._pipeline, id, reading, since, bound) for id in ids]
            async for page in merged([source.fetch for source in sources], limit):
                yield page
        finally:
            if ids:
                with suppress(EngineError):  # not awaited, because the reading may have been cancelled
                    self._pipeline.enqueue(ENTRIES, [b"finish", reading, *ids])


class _Reading:
    """Reads the entries of one ballot with numbers below a bound, oldest first."""

    def __init__(self, pipeline: Pipeline, id: bytes, reading: bytes, since: int, bound: bytes) -> None:
        self._pipeline = pipeline
        self._args = (id, reading)
        self._start = b"[" + expiry_arg(since)
        self._bound = bound

    async def fetch(self, size: int) -> tuple[list[tuple[Position, Entry]], bool]:
        args = (*self._args, self._start, self._bound, b"%d" % size)
        last, rows = await self._pipeline.run(ENTRIES, b"page", *args)
        self._start = b"(" + last + b"\xff"
        return [_entry(*row) for row in rows], bool(last)


def _entry(position: bytes, voter: bytes, choice: bytes, times: int, note: bytes) -> tuple[Position, Entry]:
    at, number = int(position[:16]), int(position[16:])
    return (at, number), Entry(voter.decode(), choice.decode(), times, at, note)
