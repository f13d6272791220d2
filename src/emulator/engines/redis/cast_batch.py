"""Casts for one ballot in one script call, and the tally after each of them."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence

from emulator.engines.base import EMPTY_TALLY, Cast, Tally
from emulator.engines.redis.driver import Reply
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import BALLOTS

MAX_CASTS = 250
"""Casts in one call, which blocks all other clients of Redis."""
_WANTS_TALLY = 7
"""The index of that flag in the command."""

Counts = tuple[tuple[str, int], ...]


class CastBatch:
    def __init__(self, pipeline: Pipeline, name: bytes) -> None:
        self.call = pipeline.enqueue(BALLOTS, [b"cast", name, b"0"])
        self._requests: list[tuple[str, bool]] = []
        """The choice of each cast, and whether it wants a tally."""
        self._results: list[Cast] | None = None

    @property
    def is_full(self) -> bool:
        return self.call.is_sent or len(self._requests) >= MAX_CASTS

    def add(self, args: Sequence[bytes], choice: str, tally: bool) -> int:
        """Add a cast and return its index in the batch."""
        self.call.command += args
        if tally:
            self.call.command[_WANTS_TALLY] = b"1"
        self._requests.append((choice, tally))
        return len(self._requests) - 1

    async def results(self) -> list[Cast]:
        # Shielded, so that cancelling one cast leaves the others alone.
        reply = await asyncio.shield(self.call.reply)
        if self._results is None:
            self._results = self._parse(reply)
        return self._results

    def _parse(self, reply: Sequence[Reply]) -> list[Cast]:
        counts = _Histogram(reply[0])
        wants_tally = any(tally for _, tally in self._requests)
        results = []
        for (choice, tally), (refusal, latest, ballot, changes) in zip(self._requests, reply[1:], strict=True):
            refused = refusal.decode() or None
            previous = None if latest is None else latest.decode()
            if ballot == b"fresh":
                counts = _Histogram(())
            if wants_tally:
                for change in changes:
                    counts.set(*change)
            if not tally or ballot == b"none":
                results.append(Cast(refused, previous, EMPTY_TALLY))
            else:
                results.append(Cast(refused, previous, Tally(counts.pairs(), previous if refused else choice)))
        return results


class _Histogram:
    """The counts of a ballot, sorted as a tally returns them."""

    def __init__(self, flat: Sequence[bytes]) -> None:
        self._pairs = list(parse_counts(flat))
        self._order = [(-count, flat[2 * at][:16]) for at, (_, count) in enumerate(self._pairs)]
        self._ranks = {choice: rank for (choice, _), rank in zip(self._pairs, self._order, strict=True)}

    def pairs(self) -> Counts:
        return tuple(self._pairs)

    def set(self, name: bytes, count: int, since: bytes) -> None:
        choice = name.decode()
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
