"""Reads a ballot's entries while voting goes on.

Redis returns the casts as they are stored, and keeps those that are replaced until a minute after the latest page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from emulator.core.keys import NEVER, Key
from emulator.storage.merging import PAGE, Row, merged_pages
from emulator.storage.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg
from emulator.storage.redis.pipeline import BALLOTS, Pipeline
from emulator.storage.redis.server import Reply
from emulator.storage.shapes import BallotEntry

_END = b"\xff"
"""After all positions."""


def _entry(row: Row) -> BallotEntry:
    """Return the entry of a row: position, that is time and number of 16 digits each, and the columns of a cast."""
    position, voter, choice, times, note, _ = row
    return BallotEntry(voter.decode(), choice.decode(), times, int(position[:16]), note)


def _joined_notes(rows: Sequence[Row], separator: bytes) -> bytes | None:
    """Return the joined notes of rows, or `None` if one of them is not whole."""
    return separator.join([row[4] for row in rows]) if all(row[5] for row in rows) else None


def _in_fives(flat: Sequence[Any]) -> list[Row]:
    parts = iter(flat)
    return list(zip(parts, parts, parts, parts, parts, strict=True))


class Reading:
    """Reads the entries of one ballot with numbers below a bound, oldest first."""

    def __init__(self, pipeline: Pipeline, id: bytes, since: int, bound: bytes) -> None:
        self._pipeline = pipeline
        self._id = id
        self._start = b"[" + expiry_arg(since)
        self._bound = bound

    def request(self, size: int) -> asyncio.Future[Reply]:
        """Begin to read the next rows, at most `size`; `rows` takes the reply."""
        return self._pipeline.start(BALLOTS, b"page", self._id, self._start, b"%d" % size)

    def rows(self, reply: Reply, size: int) -> tuple[list[Row], bool]:
        """Return the rows of a reply to `request`, and whether there may be more."""
        found, replaced = map(_in_fives, reply)
        ends = [some[-1][0][:32] for some in (found, replaced) if len(some) == size]
        last = min(ends, default=_END)
        rows = [(member[:32], member[32:], *cast) for member, *cast in found]
        # A replaced entry belongs to the readings that began after its cast and before its replacement.
        rows += [(member[:32], member[48:], *cast) for member, *cast in replaced if self._bound <= member[32:48]]
        rows = sorted(row for row in rows if row[0] <= last and row[0][16:] < self._bound)
        if len(rows) > size:
            rows = rows[:size]
            last = rows[-1][0]
        self._start = b"(" + last + b"\xff"
        return rows, last is not _END

    async def fetch(self, size: int) -> tuple[list[Row], bool]:
        return self.rows(await self.request(size), size)


class Readings:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        readings = await self._begin(key, now, since)
        async for rows in merged_pages([each.fetch for each in readings], NEVER if limit is None else limit):
            yield [_entry(row) for row in rows]

    async def notes(
        self, key: Key, *, now: int, separator: bytes, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[bytes | Sequence[BallotEntry]]:
        if key.channel is None:
            async for page in self.entries(key, now=now, since=since, limit=limit):
                yield page
            return
        left = NEVER if limit is None else limit
        for reading in await self._begin(key, now, since):  # at most one
            size = min(PAGE, left)
            reply = reading.request(size)
            while left > 0:
                rows, has_more = reading.rows(await reply, size)
                left = left - len(rows) if has_more else 0
                size = min(PAGE, left)
                if left:  # Redis reads the next page while this one is sent
                    reply = reading.request(size)
                if rows:
                    yield _joined_notes(rows, separator) or [_entry(row) for row in rows]

    async def _begin(self, key: Key, now: int, since: int) -> list[Reading]:
        name, is_all = (channel_last_prefix(key), b"1") if key.channel is None else (channel_last(key), b"0")
        bound, *ballots = await self._pipeline.run(BALLOTS, b"begin", now_arg(now), is_all, name)
        return [Reading(self._pipeline, ballot, since, bound) for ballot in ballots]
