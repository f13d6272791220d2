"""Reading a ballot's entries while its voters go on voting.

A reading is known to Redis while it lasts: what is replaced meanwhile is kept for it. So it sees the ballot as it was
when the reading began, in pages.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from emulator.engines.base import Entry, Key
from emulator.engines.redis.keys import beside_channel, by_channel, ending, moment
from emulator.engines.redis.merge import Position, merged
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import ENTRIES
from emulator.errors import EngineError


class Readings:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def entries(self, key: Key, now: int, since: int, limit: int | None) -> AsyncIterator[Sequence[Entry]]:
        reading = uuid.uuid4().bytes
        name, is_all = (beside_channel(key), b"1") if key.channel is None else (by_channel(key), b"0")
        bound, *ids = await self._pipeline.run(ENTRIES, b"begin", reading, moment(now), is_all, name)
        try:
            sources = [_Reading(self._pipeline, id, reading, since, bound) for id in ids]
            async for page in merged([source.fetch for source in sources], limit):
                yield page
        finally:
            if ids:
                with suppress(EngineError):  # not waited for, as this may be a reading that was cancelled
                    self._pipeline.put(ENTRIES, [b"finish", reading, *ids])


class _Reading:
    """The entries of one ballot with numbers below a bound, oldest first."""

    def __init__(self, pipeline: Pipeline, id: bytes, reading: bytes, since: int, bound: bytes) -> None:
        self._pipeline = pipeline
        self._args = (id, reading)
        self._from = b"[" + ending(since)
        self._bound = bound

    async def fetch(self, size: int) -> tuple[list[tuple[Position, Entry]], bool]:
        args = (*self._args, self._from, self._bound, b"%d" % size)
        reached, rows = await self._pipeline.run(ENTRIES, b"page", *args)
        self._from = b"(" + reached + b"\xff"
        return [_entry(*row) for row in rows], bool(reached)


def _entry(position: bytes, voter: bytes, choice: bytes, times: int, note: bytes) -> tuple[Position, Entry]:
    at, number = int(position[:16]), int(position[16:])
    return (at, number), Entry(voter.decode(), choice.decode(), times, at, note)
