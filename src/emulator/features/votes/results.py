"""A poll's results as WebSocket clients read them, in the reply to `get` and in every update. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from emulator.engines.base import Tally
from emulator.features.votes.definitions import Definition, status_of
from emulator.features.votes.rules import stats_of


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
