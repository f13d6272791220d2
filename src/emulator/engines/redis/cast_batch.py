"""Casts for one ballot in one script call, and the tally after each of them.

A process keeps the counts of the ballots that it casts for, so Redis sends only what other processes have changed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from emulator.bounded_cache import BoundedCache
from emulator.engines.base import EMPTY_TALLY, Cast, Tally
from emulator.engines.redis.driver import Reply
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import BALLOTS
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
        """Add a cast and return its result, of its own, so that cancelling one cast leaves the others alone."""
        self.call.command += args
        result: asyncio.Future[Cast] = self.call.reply.get_loop().create_future()
        self._requests.append((choice, tally, result))
        return result

    def end(self) -> None:
        """Pass a failure of the call on to its casts."""
        reply = self.call.reply
        error = None if reply.cancelled() else reply.exception()
        for *_, result in self._requests:
            if not result.done():
                if error is None:
                    result.cancel()
                else:  # a new exception for each caller, because raising one modifies it
                    result.set_exception(EngineError(str(error)))
                    result.exception()  # mark it as retrieved: the caller may be gone

    @property
    def _wants_tally(self) -> bool:
        return any(tally for _, tally, _ in self._requests)

    def _prepare(self) -> None:
        """Name the turn whose counts this process knows, if a cast wants a tally."""
        if self._wants_tally:
            counts = self._known.get(self._name)
            if counts is not None and asyncio.get_running_loop().time() < counts.read_at + MAX_AGE:
                self._counts = counts
            self.call.command[_KNOWN_TURN] = b"none" if self._counts is None else self._counts.turn.encode()

    def _parse(self, reply: Sequence[Reply]) -> None:
        turn, casts = _decode(reply[0])
        counts = self._synced(reply[1])
        for (choice, tally, result), (refused, previous, ballot, *changes) in zip(self._requests, casts, strict=True):
            if ballot == "fresh":
                counts.clear()
            counts.change(changes)
            previous = None if previous is False else previous
            after = EMPTY_TALLY
            if tally and ballot != "none":
                after = Tally(counts.pairs(), previous if refused else choice)
            if not result.done():
                result.set_result(Cast(refused or None, previous, after))
        if not self._wants_tally:
            return
        counts.turn = turn
        if turn and counts.is_small:
            self._known[self._name] = counts
        else:
            self._known.pop(self._name)

    def _synced(self, news: Sequence[Reply]) -> KnownCounts:
        """Return the counts before the casts."""
        if news and news[0] == b"counts":
            return KnownCounts(news[1], asyncio.get_running_loop().time())
        counts = self._counts or KnownCounts((), asyncio.get_running_loop().time())
        for one in news[1:]:  # it may already know some, from the reply to a call that was sent together with this one
            if one[:16] == counts.turn.encode():
                counts.change(_decode(one[32:]))
                counts.turn = one[16:32].decode()
        return counts


class KnownCounts:
    """The counts of a ballot after a turn, sorted as a tally returns them."""

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

    def pairs(self) -> Counts:
        return tuple(self._pairs)

    def clear(self) -> None:
        self._pairs, self._order, self._ranks = [], [], {}

    def change(self, changes: Sequence[str | int]) -> None:
        """Apply choice, new count, and the number of the cast since when it has casts, of each changed choice."""
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
