"""Casts for one ballot in one call, and the tally that each of them is answered with."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence

from emulator.engines.base import EMPTY_TALLY, Cast, Tally
from emulator.engines.redis.connection import Answer
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import BALLOTS

MOST_MARKS = 250
"""Marks of one call; nobody else has a turn in Redis meanwhile."""
_ASKS_FOR_TALLY = 6
"""Where in the command it stands."""

Pairs = tuple[tuple[str, int], ...]


class CastBatch:
    def __init__(self, pipeline: Pipeline, name: bytes) -> None:
        self.call = pipeline.put(BALLOTS, [b"cast", name, b"0"])
        self._marks: list[tuple[str, bool]] = []
        """The choice of each, and whether a tally is asked for."""
        self._done: list[Cast] | None = None

    @property
    def is_full(self) -> bool:
        return self.call.is_sent or len(self._marks) >= MOST_MARKS

    def add(self, args: Sequence[bytes], choice: str, tally: bool) -> int:
        """Returns which it is."""
        self.call.command += args
        if tally:
            self.call.command[_ASKS_FOR_TALLY] = b"1"
        self._marks.append((choice, tally))
        return len(self._marks) - 1

    async def done(self) -> list[Cast]:
        # Shielded, as whoever is cancelled must not take the others with it.
        answer = await asyncio.shield(self.call.answer)
        if self._done is None:
            self._done = self._read(answer)
        return self._done

    def _read(self, answer: Sequence[Answer]) -> list[Cast]:
        counts = _Counts(answer[0])
        is_asked_for = any(tally for _, tally in self._marks)
        done = []
        for (choice, tally), (refusal, before, met, changes) in zip(self._marks, answer[1:], strict=True):
            refused = refusal.decode() or None
            previous = None if before is None else before.decode()
            if met == b"fresh":
                counts = _Counts(())
            if is_asked_for:
                for change in changes:
                    counts.change(*change)
            if not tally or met == b"none":
                done.append(Cast(refused, previous, EMPTY_TALLY))
            else:
                done.append(Cast(refused, previous, Tally(counts.pairs(), previous if refused else choice)))
        return done


class _Counts:
    """The counts of a ballot in a tally's order, while marks are added to it."""

    def __init__(self, flat: Sequence[bytes]) -> None:
        self._pairs = list(pairs_of(flat))
        self._order = [(-count, flat[2 * at][:16]) for at, (_, count) in enumerate(self._pairs)]
        self._ranks = {choice: rank for (choice, _), rank in zip(self._pairs, self._order, strict=True)}

    def pairs(self) -> Pairs:
        return tuple(self._pairs)

    def change(self, name: bytes, count: int, since: bytes) -> None:
        choice = name.decode()
        if rank := self._ranks.pop(choice, None):
            at = bisect_left(self._order, rank)
            del self._order[at], self._pairs[at]
        if count:
            self._ranks[choice] = rank = (-count, since)
            at = bisect_left(self._order, rank)
            self._order.insert(at, rank)
            self._pairs.insert(at, (choice, count))


def pairs_of(flat: Sequence[bytes]) -> Pairs:
    """What a tally's order holds: each choice behind the number it has been held since, and how many, negative."""
    return tuple((flat[at][16:].decode(), -int(flat[at + 1])) for at in range(0, len(flat), 2))
