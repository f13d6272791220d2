"""Ballots on Redis. Casts for one ballot that are handed in while others are under way go as one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from emulator.engines.base import EMPTY_TALLY, Cast, Entry, Key, Mark, Tally, Terms
from emulator.engines.redis.calls import Call, Calls
from emulator.engines.redis.entries import Readings
from emulator.engines.redis.link import Answer
from emulator.engines.redis.names import beside_place, by_place, ending, moment
from emulator.engines.redis.scripts import BALLOTS

MOST_MARKS = 250
"""Marks of one call; nobody else has a turn in Redis meanwhile."""
_ALL = b"%d" % 10**9


class RedisBallots:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._readings = Readings(calls)
        self._casting: dict[bytes, _Casting] = {}

    async def define(self, key: Key, definition: bytes, terms: Terms, *, now: int, expires_at: int) -> None:
        numbers = [b"%d" % number for number in terms[2:]]
        args = (moment(now), ending(expires_at), ending(terms.opens_at), ending(terms.closes_at), *numbers)
        await self._calls.run(BALLOTS, b"define", by_place(key), definition, *args)

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        found: bytes | None = await self._calls.run(BALLOTS, b"definition", by_place(key), moment(now))
        return found

    async def cast(self, key: Key, mark: Mark, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        voter, choice, note, known, times = mark
        args = (voter.encode(), choice.encode(), note, b"%d" % known, b"%d" % times, moment(now), ending(expires_at))
        casting = self._casting_for(by_place(key))
        number = casting.add((*args, b"%d" % tally))
        refused, previous, counts = (await casting.answers())[number]
        if refused == b"times":
            raise ValueError(f"a mark counts at least once, not {times} times")
        before = None if previous is None else previous.decode()
        if not tally:
            return Cast(refused.decode() or None, before, EMPTY_TALLY)
        return Cast(refused.decode() or None, before, Tally(_counts(counts), before if refused else choice))

    async def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        asker = () if voter is None else (voter.encode(),)
        if key.place is None:
            rows, choice = await self._calls.run(BALLOTS, b"tally_of_all", beside_place(key), moment(now), *asker)
            counts = _summed(rows)[:top]
        else:
            most = _ALL if top is None else b"%d" % top
            rows, choice = await self._calls.run(BALLOTS, b"tally", by_place(key), moment(now), most, *asker)
            counts = _counts(rows)
        return Tally(counts, None if choice is None else choice.decode())

    def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[Entry]]:
        return self._readings.entries(key, now, since, limit)

    async def drop(self, key: Key, *, now: int) -> None:
        if key.place is None:
            await self._calls.run(BALLOTS, b"drop_all", moment(now), beside_place(key))
        else:
            await self._calls.run(BALLOTS, b"drop", moment(now), by_place(key))

    def _casting_for(self, name: bytes) -> _Casting:
        casting = self._casting.get(name)
        if casting is None or casting.is_full:
            casting = self._casting[name] = _Casting(self._calls.put(BALLOTS, [b"cast", name]))
            casting.call.answer.add_done_callback(lambda _: self._finished(name, casting))
        return casting

    def _finished(self, name: bytes, casting: _Casting) -> None:
        if self._casting.get(name) is casting:
            del self._casting[name]


class _Casting:
    """Casts for one ballot, in one call."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self.call.is_sent or self._count >= MOST_MARKS

    def add(self, args: Sequence[bytes]) -> int:
        self.call.command += args
        self._count += 1
        return self._count - 1

    async def answers(self) -> Answer:
        # Shielded, as whoever is cancelled must not take the others with it.
        return await asyncio.shield(self.call.answer)


def _counts(flat: Sequence[bytes]) -> tuple[tuple[str, int], ...]:
    """What a tally's order holds: each choice behind the number it has been held since, and how many, negative."""
    return tuple((flat[at][16:].decode(), -int(flat[at + 1])) for at in range(0, len(flat), 2))


def _summed(flat: Sequence[Answer]) -> tuple[tuple[str, int], ...]:
    rows = [(flat[at].decode(), flat[at + 1], flat[at + 2]) for at in range(0, len(flat), 3)]
    rows.sort(key=lambda row: (-row[1], row[2]))
    return tuple((choice, count) for choice, count, _ in rows)
