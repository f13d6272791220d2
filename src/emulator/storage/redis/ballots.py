"""Ballots on Redis. Concurrent casts for one ballot share one script call.

It returns the counts before them and what each changes, and so the tally after each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from emulator.core.keys import Key
from emulator.storage.redis.entries import Readings
from emulator.storage.redis.keys import channel_last, channel_last_prefix, expiry_arg, now_arg, parse_channel_last
from emulator.storage.redis.pipeline import BALLOTS, Pipeline, Row
from emulator.storage.redis.reading import listing
from emulator.storage.redis.server import Reply
from emulator.storage.shapes import EMPTY_TALLY, Cast, CastRequest, Expected, ListedBallot, Tally, Terms

_decode = msgspec.msgpack.decode


def _casts(rows: Sequence[Row], reply: Sequence[Reply]) -> list[Cast]:
    """Return the result of each row, with the counts at its time."""
    counts = Counts(reply[1])
    casts = []
    for row, (refused, previous, ballot, *changes) in zip(rows, _decode(reply[0]), strict=True):
        if ballot == "fresh":
            counts.clear()
        counts.change(changes)
        previous = None if previous is False else previous
        after = EMPTY_TALLY
        if row[-1] == b"1" and ballot != "none":
            after = Tally(counts.as_tuples(), previous if refused else row[1].decode())
        casts.append(Cast(refused or None, previous, after))
    return casts


class Counts:
    """The counts of a ballot, in the order of a tally."""

    def __init__(self, flat: Sequence[bytes]) -> None:
        self._pairs = list(parse_counts(flat))
        self._order = [(-count, flat[2 * at][:16].decode()) for at, (_, count) in enumerate(self._pairs)]
        self._ranks = {choice: rank for (choice, _), rank in zip(self._pairs, self._order, strict=True)}

    def as_tuples(self) -> tuple[tuple[str, int], ...]:
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


def parse_counts(flat: Sequence[bytes]) -> tuple[tuple[str, int], ...]:
    """Parse members and scores of the sorted set `…:t`: a number of 16 digits, then the choice; and minus the count."""
    return tuple((flat[at][16:].decode(), -int(flat[at + 1])) for at in range(0, len(flat), 2))


_ALL = b"%d" % 10**9


class RedisBallots:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        readings = Readings(pipeline)
        self.entries, self.notes = readings.entries, readings.notes

    async def define(
        self, key: Key, definition: bytes, terms: Terms, *, now: int, expires_at: int, only_if: Expected = UNSET
    ) -> bool:
        times = (now_arg(now), expiry_arg(expires_at), expiry_arg(terms.opens_at), expiry_arg(terms.closes_at))
        args = [channel_last(key), definition, *times, *(b"%d" % number for number in terms[2:])]
        if only_if is not UNSET:
            args += (b"0",) if only_if is None else (b"1", only_if)
        return bool(await self._pipeline.run(BALLOTS, b"define", *args))

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        found: bytes | None = await self._pipeline.run(BALLOTS, b"definition", channel_last(key), now_arg(now))
        return found

    async def cast(self, key: Key, request: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        voter, choice, note, known, times, whole = request
        flags = (b"%d" % (known + 2 * whole), b"%d" % times, now_arg(now), expiry_arg(expires_at), b"%d" % tally)
        row = (voter.encode(), choice.encode(), note, *flags)
        name = channel_last(key)
        cast: Cast
        (cast,) = await self._pipeline.join(BALLOTS, b"cast", [row], name=name, parse=_casts)
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


def _sort(flat: Sequence[Reply]) -> tuple[tuple[str, int], ...]:
    rows = [(flat[at].decode(), flat[at + 1], flat[at + 2]) for at in range(0, len(flat), 3)]
    rows.sort(key=lambda row: (-row[1], row[2]))
    return tuple((choice, count) for choice, count, _ in rows)
