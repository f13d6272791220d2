"""Ballots on Redis. Casts for one ballot that are handed in while others are under way go as one call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.engines.base import Cast, CastRequest, Entry, Key, Tally, Terms
from emulator.engines.redis.cast_batch import CastBatch, pairs_of
from emulator.engines.redis.connection import Answer
from emulator.engines.redis.entries import Readings
from emulator.engines.redis.keys import beside_channel, by_channel, ending, moment
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import BALLOTS

_ALL = b"%d" % 10**9


class RedisBallots:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._readings = Readings(pipeline)
        self._casting: dict[bytes, CastBatch] = {}

    async def define(self, key: Key, definition: bytes, terms: Terms, *, now: int, expires_at: int) -> None:
        numbers = [b"%d" % number for number in terms[2:]]
        args = (moment(now), ending(expires_at), ending(terms.opens_at), ending(terms.closes_at), *numbers)
        await self._pipeline.run(BALLOTS, b"define", by_channel(key), definition, *args)

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        found: bytes | None = await self._pipeline.run(BALLOTS, b"definition", by_channel(key), moment(now))
        return found

    async def cast(self, key: Key, mark: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        voter, choice, note, known, times = mark
        args = (voter.encode(), choice.encode(), note, b"%d" % known, b"%d" % times, moment(now), ending(expires_at))
        casting = self._casting_for(by_channel(key))
        number = casting.add(args, choice, tally)
        done = (await casting.done())[number]
        if done.refused == "times":
            raise ValueError(f"a mark counts at least once, not {times} times")
        return done

    async def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        asker = () if voter is None else (voter.encode(),)
        if key.channel is None:
            rows, choice = await self._pipeline.run(BALLOTS, b"tally_of_all", beside_channel(key), moment(now), *asker)
            counts = _summed(rows)[:top]
        else:
            most = _ALL if top is None else b"%d" % top
            rows, choice = await self._pipeline.run(BALLOTS, b"tally", by_channel(key), moment(now), most, *asker)
            counts = pairs_of(rows)
        return Tally(counts, None if choice is None else choice.decode())

    def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[Entry]]:
        return self._readings.entries(key, now, since, limit)

    async def drop(self, key: Key, *, now: int) -> None:
        if key.channel is None:
            await self._pipeline.run(BALLOTS, b"drop_all", moment(now), beside_channel(key))
        else:
            await self._pipeline.run(BALLOTS, b"drop", moment(now), by_channel(key))

    def _casting_for(self, name: bytes) -> CastBatch:
        casting = self._casting.get(name)
        if casting is None or casting.is_full:
            casting = self._casting[name] = CastBatch(self._pipeline, name)
            casting.call.answer.add_done_callback(lambda _: self._finished(name, casting))
        return casting

    def _finished(self, name: bytes, casting: CastBatch) -> None:
        if self._casting.get(name) is casting:
            del self._casting[name]


def _summed(flat: Sequence[Answer]) -> tuple[tuple[str, int], ...]:
    rows = [(flat[at].decode(), flat[at + 1], flat[at + 2]) for at in range(0, len(flat), 3)]
    rows.sort(key=lambda row: (-row[1], row[2]))
    return tuple((choice, count) for choice, count, _ in rows)
