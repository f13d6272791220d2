"""How a poll stands, as the socket shows it: in the reply to `get`, and in every update. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from emulator.engines.base import Tally
from emulator.features.votes.definitions import Definition, status_of
from emulator.features.votes.rules import stats_of


class PollView(Struct):
    """A poll as its subscribers know it."""

    poll_id: str
    prompt: str
    options: list[str]
    status: str
    """`pending`, `active` or `expired`."""
    user_data: Any


class Standing(Struct):
    """A poll and its results. `results[i]` counts the votes for option i; without options, for values 0 to 63."""

    topic_id: str
    poll: PollView
    results: list[int]
    mean: float
    sum: int
    count: int
    stddev: float
    """Over all votes, also for values that are no option."""


def standing_of(poll_id: str, definition: Definition | None, tally: Tally, *, now: int) -> Standing | None:
    """A poll may have a definition, votes, or both; `None` if it has neither."""
    if definition is None and not tally.counts:
        return None
    stats = stats_of(tally.counts)
    if definition is None:
        view = PollView(poll_id, "", [], "active", None)
    else:
        view = PollView(
            poll_id, definition.prompt, definition.options, status_of(definition, now=now), definition.user_data
        )
    results = stats.specific[: len(view.options)] if view.options else stats.specific
    return Standing(poll_id, view, results, stats.mean, stats.sum, stats.count, stats.stddev)
