"""Ballots on Redis. Concurrent casts for one ballot share one script call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.bounded_cache import BoundedCache
from emulator.engines.base import Cast, CastRequest, Entry, Key, ListedBallot, Tally, Terms
from emulator.engines.redis.cast_batch import CastBatch, KnownCounts, parse_counts
from emulator.engines.redis.driver import Reply
from emulator.engines.redis.entries import Readings
from emulator.engines.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg, parse_channel_last
from emulator.engines.redis.listing import listing
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import BALLOTS

_ALL = b"%d" % 10**9
_MAX_KNOWN = 256
"""Ballots whose counts are kept."""


class RedisBallots:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._readings = Readings(pipeline)
        self._batches: dict[bytes, CastBatch] = {}
        self._known: BoundedCache[bytes, KnownCounts] = BoundedCache(_MAX_KNOWN)

    async def define(self, key: Key, definition: bytes, terms: Terms, *, now: int, expires_at: int) -> None:
        await self._pipeline.run(BALLOTS, b"define", *_definition_args(key, definition, terms, now, expires_at))

    async def redefine(
        self, key: Key, expected: bytes | None, definition: bytes, terms: Terms, *, now: int, expires_at: int
    ) -> bool:
        args = _definition_args(key, definition, terms, now, expires_at)
        only_if = (b"0",) if expected is None else (b"1", expected)
        return bool(await self._pipeline.run(BALLOTS, b"define", *args, *only_if))

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        found: bytes | None = await self._pipeline.run(BALLOTS, b"definition", channel_last(key), now_arg(now))
        return found

    async def cast(self, key: Key, request: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        voter, choice, note, known, times, whole = request
        flags = b"%d" % (known + 2 * whole)
        args = (
            voter.encode(), choice.encode(), note, flags, b"%d" % times, now_arg(now), expiry_arg(expires_at),
        )  # fmt: skip
        batch = self._open_batch(channel_last(key))
        cast = await batch.add(args, choice, tally)
        if cast.refused == "times":
            raise ValueError(f"times must be at least 1, not {times}")
        return cast

    async def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        optional = () if voter is None else (voter.encode(),)
        if key.channel is None:
            args = (channel_last_prefix(key), now_arg(now), *optional)
            rows, choice = await self._pipeline.run(BALLOTS, b"tally_all_channels", *args)
            counts = _sort(rows)[:top]
        else:
            args = (channel_last(key), now_arg(now), _ALL if top is None else b"%d" % top, *optional)
            rows, choice = await self._pipeline.run(BALLOTS, b"tally", *args)
            counts = parse_counts(rows)
        return Tally(counts, None if choice is None else choice.decode())

    def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[Entry]]:
        return self._readings.entries(key, now, since, limit)

    def notes(
        self, key: Key, *, now: int, separator: bytes, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[bytes | Sequence[Entry]]:
        return self._readings.entries(key, now, since, limit)

    async def drop(self, key: Key, *, now: int) -> list[Key]:
        if key.channel is None:
            found = await self._pipeline.run(BALLOTS, b"drop_all_channels", now_arg(now), channel_last_prefix(key))
            return [parse_channel_last(text) for text in found]
        await self._pipeline.run(BALLOTS, b"drop", now_arg(now), channel_last(key))
        return [key]

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedBallot]:
        found = await listing(self._pipeline, BALLOTS, group, now=now, limit=limit, after=after, matching=matching)
        return [ListedBallot(key, count, int(ends), definition) for key, (count, ends, definition) in found]

    def _open_batch(self, name: bytes) -> CastBatch:
        batch = self._batches.get(name)
        if batch is None or batch.is_full:
            batch = self._batches[name] = CastBatch(self._pipeline, name, self._known)
            batch.call.reply.add_done_callback(lambda _: self._end(name, batch))
        return batch

    def _end(self, name: bytes, batch: CastBatch) -> None:
        batch.end()
        if self._batches.get(name) is batch:
            del self._batches[name]


def _sort(flat: Sequence[Reply]) -> tuple[tuple[str, int], ...]:
    rows = [(flat[at].decode(), flat[at + 1], flat[at + 2]) for at in range(0, len(flat), 3)]
    rows.sort(key=lambda row: (-row[1], row[2]))
    return tuple((choice, count) for choice, count, _ in rows)


def _definition_args(key: Key, definition: bytes, terms: Terms, now: int, expires_at: int) -> tuple[bytes, ...]:
    times = (now_arg(now), expiry_arg(expires_at), expiry_arg(terms.opens_at), expiry_arg(terms.closes_at))
    return (channel_last(key), definition, *times, *(b"%d" % number for number in terms[2:]))
