"""Ballots on Redis. Concurrent casts for one ballot share one script call, which returns the tally after each of them.

A process keeps the counts of the ballots that it casts for, so Redis sends only what other processes have changed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from emulator.bounded_cache import BoundedCache
from emulator.engines.redis.entries import Readings
from emulator.engines.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg, parse_channel_last
from emulator.engines.redis.nodes import Reply
from emulator.engines.redis.pipeline import BALLOTS, Pipeline
from emulator.engines.redis.reading import listing
from emulator.engines.shapes import EMPTY_TALLY, Cast, CastRequest, Key, ListedBallot, Tally, Terms
from emulator.errors import EngineError

MAX_CASTS = 250
"""Casts in one call, which blocks all other clients of Redis."""
MAX_KNOWN_CHOICES = 1000
MAX_AGE = 1.0
"""Seconds after which all counts are read again, because a process of an earlier version does not note its changes."""
_KNOWN_TURN = 7
"""The index of that argument in the command."""

Counts = tuple[tuple[str, int], ...]
_decode = msgspec.msgpack.decode


class CastBatch:
    def __init__(self, pipeline: Pipeline, name: bytes, known: BoundedCache[bytes, KnownCounts]) -> None:
        self.call = pipeline.enqueue(BALLOTS, [b"cast", name, b""])
        self.call.prepare, self.call.parse = self._prepare, self._parse
        self._name = name
        self._known = known
        self._counts: KnownCounts | None = None
        self._requests: list[tuple[str, bool, asyncio.Future[Cast]]] = []
        """The choice of each cast, whether it wants a tally, and its result."""

    @property
    def is_full(self) -> bool:
        return self.call.is_sent or len(self._requests) >= MAX_CASTS

    def add(self, args: Sequence[bytes], choice: str, tally: bool) -> asyncio.Future[Cast]:
        """Add a cast to the batch and return the future of its result. Cancelling it does not affect other casts."""
        self.call.command += args
        result: asyncio.Future[Cast] = self.call.reply.get_loop().create_future()
        self._requests.append((choice, tally, result))
        return result

    def end(self) -> None:
        """End the batch; a failed script call fails each of its casts."""
        reply = self.call.reply
        error = None if reply.cancelled() else reply.exception()
        for *_, result in self._requests:
            if not result.done():
                if error is None:
                    result.cancel()
                else:  # a new exception for each caller, because raising one modifies it
                    result.set_exception(EngineError(str(error)))
                    result.exception()  # retrieve its error: the caller may be gone

    @property
    def _wants_tally(self) -> bool:
        return any(tally for _, tally, _ in self._requests)

    def _prepare(self) -> None:
        """Add the state whose counts this process knows to the script's arguments, if a cast wants a tally."""
        if self._wants_tally:
            counts = self._known.get(self._name)
            if counts is not None and asyncio.get_running_loop().time() < counts.read_at + MAX_AGE:
                self._counts = counts
            self.call.command[_KNOWN_TURN] = b"none" if self._counts is None else self._counts.turn.encode()

    def _parse(self, reply: Sequence[Reply]) -> None:
        turn, casts = _decode(reply[0])
        counts = self._counts_before_casts(reply[1])
        for (choice, tally, result), (refused, previous, ballot, *changes) in zip(self._requests, casts, strict=True):
            if ballot == "fresh":
                counts.clear()
            counts.change(changes)
            previous = None if previous is False else previous
            after = EMPTY_TALLY
            if tally and ballot != "none":
                after = Tally(counts.as_tuples(), previous if refused else choice)
            if not result.done():
                result.set_result(Cast(refused or None, previous, after))
        if not self._wants_tally:
            return
        counts.turn = turn
        if turn and counts.is_small:
            self._known[self._name] = counts
        else:
            self._known.pop(self._name)

    def _counts_before_casts(self, news: Sequence[Reply]) -> KnownCounts:
        """Return the counts of the ballot as they were before these casts."""
        if news and news[0] == b"counts":
            return KnownCounts(news[1], asyncio.get_running_loop().time())
        counts = self._counts or KnownCounts((), asyncio.get_running_loop().time())
        for one in news[1:]:  # it may already know some, from the reply to a call that was sent together with this one
            if one[:16] == counts.turn.encode():
                counts.change(_decode(one[32:]))
                counts.turn = one[16:32].decode()
        return counts


class KnownCounts:
    """The counts of a ballot as of one script call, in the order of a tally."""

    def __init__(self, flat: Sequence[bytes], read_at: float) -> None:
        self.turn = ""
        self.read_at = read_at
        """When all of them were read, in the time of the event loop."""
        self._pairs = list(parse_counts(flat))
        self._order = [(-count, flat[2 * at][:16].decode()) for at, (_, count) in enumerate(self._pairs)]
        self._ranks = {choice: rank for (choice, _), rank in zip(self._pairs, self._order, strict=True)}

    @property
    def is_small(self) -> bool:
        return len(self._pairs) <= MAX_KNOWN_CHOICES

    def as_tuples(self) -> Counts:
        return tuple(self._pairs)

    def clear(self) -> None:
        self._pairs, self._order, self._ranks = [], [], {}

    def change(self, changes: Sequence[str | int]) -> None:
        """Apply triples: a choice, its new count, and the number of its first cast since it last had none."""
        for at in range(0, len(changes), 3):
            self._set(*changes[at : at + 3])  # type: ignore[arg-type]

    def _set(self, choice: str, count: int, since: str) -> None:
        if rank := self._ranks.pop(choice, None):
            at = bisect_left(self._order, rank)
            del self._order[at], self._pairs[at]
        if count:
            self._ranks[choice] = rank = (-count, since)
            at = bisect_left(self._order, rank)
            self._order.insert(at, rank)
            self._pairs.insert(at, (choice, count))


def parse_counts(flat: Sequence[bytes]) -> Counts:
    """Parse members and scores of the sorted set `…:t`: a number of 16 digits, then the choice; and minus the count."""
    return tuple((flat[at][16:].decode(), -int(flat[at + 1])) for at in range(0, len(flat), 2))


_ALL = b"%d" % 10**9
_MAX_KNOWN = 256
"""Ballots whose counts are kept."""


class RedisBallots:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._batches: dict[bytes, CastBatch] = {}
        self._known: BoundedCache[bytes, KnownCounts] = BoundedCache(_MAX_KNOWN)
        self._readings = Readings(pipeline)
        self.entries, self.notes = self._readings.entries, self._readings.notes

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
