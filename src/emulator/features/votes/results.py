"""A poll's results as WebSocket clients read them, in the reply to `get` and in every update."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from emulator.clock import Clock
from emulator.engines.shapes import Ballots, Key, Tally
from emulator.features.votes.definitions import Definition, status_of
from emulator.features.votes.rules import Stats, stats_of


class PollView(Struct):
    """The part of a poll's definition that subscribers read."""

    poll_id: str
    prompt: str
    options: list[str]
    status: str
    """`pending`, `active` or `expired`."""
    user_data: Any


class PollResults(Struct):
    """A poll and its results. `results[i]` counts the votes for option i or, in a poll without options, value i."""

    topic_id: str
    poll: PollView
    results: list[int]
    mean: float
    sum: int
    count: int
    stddev: float
    """Like `mean`, `sum` and `count`, over all votes, including values that are not options."""


def results_of(poll_id: str, definition: Definition | None, tally: Tally, *, now: int) -> PollResults | None:
    """Return the results of a poll; `None` if it has neither a definition nor votes. `now` is in ms."""
    if definition is None and not tally.counts:
        return None
    stats = stats_of(tally.counts)
    if definition is None:
        view = PollView(poll_id, "", [], "active", None)
    else:
        status = status_of(definition, now=now)
        view = PollView(poll_id, definition.prompt, definition.options, status, definition.user_data)
    results = stats.specific[: len(view.options)] if view.options else stats.specific
    return PollResults(poll_id, view, results, stats.mean, stats.sum, stats.count, stats.stddev)


class PollReader:
    """Reads polls by their keys."""

    def __init__(self, ballots: Ballots, clock: Clock) -> None:
        self._ballots = ballots
        self._clock = clock

    async def stored_definition(self, key: Key) -> tuple[bytes | None, Definition | None]:
        """Return the definition as stored and decoded; `None` if there is none."""
        text = await self._ballots.definition(key, now=self._clock.now())
        return text, None if text is None else msgspec.json.decode(text, type=Definition)

    async def definition(self, key: Key) -> Definition | None:
        return (await self.stored_definition(key))[1]

    async def results(self, key: Key) -> PollResults | None:
        """Return the results; `None` if the poll has neither a definition nor votes."""
        now = self._clock.now()
        return results_of(key.name, await self.definition(key), await self._ballots.tally(key, now=now), now=now)

    async def stats(self, key: Key) -> Stats:
        return stats_of((await self._ballots.tally(key, now=self._clock.now())).counts)
