"""What a poll id, a vote and a poll's statistics may be. Pure: no clock, no storage."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import UNSET, Struct, UnsetType

from emulator.clock import WEEK
from emulator.engines.base import CLOSED, OVER_ALLOWANCE, UNKNOWN_VOTER
from emulator.errors import BadRequest

LIFETIME = WEEK
"""A poll is removed this long after its last vote (Limits, ruling P5)."""
LOWEST, HIGHEST = -99, 99
COUNTED = 64
"""`specific` counts the values 0 to 63."""
MOST_AT_ONCE = 30
GLOBAL = "global-"

_POLL_ID = re.compile(r"[A-Za-z0-9$_-]{1,64}")
_REFUSALS = {
    CLOSED: BadRequest("poll is closed", "the poll takes no votes now: it has not begun, has ended or is disabled"),
    OVER_ALLOWANCE: BadRequest("unacceptable vote", "the poll's limits per user or option would be passed"),
    UNKNOWN_VOTER: BadRequest("unacceptable vote", "the poll takes votes only of users who shared their identity"),
}


class Stats(Struct):
    """The statistics of all votes of a poll."""

    stddev: float
    mean: float
    sum: int
    count: int
    specific: list[int]


class Poll(Struct):
    """The answer of GET and POST `vote`: `stats`, and the same flat beside it (ruling P1)."""

    stats: Stats
    stddev: float
    mean: float
    sum: int
    count: int
    specific: list[int]
    vote: int | UnsetType = UNSET
    """The caller's vote, absent when the caller has none."""


@lru_cache(maxsize=1024)
def checked_poll_id(poll_id: str) -> str:
    """An optional `global-`, then letters, digits, `$`, `-` and `_`; at most 64 in all (ruling W8)."""
    if not _POLL_ID.fullmatch(poll_id) or poll_id == GLOBAL:
        raise BadRequest("Invalid poll id", "id: 1 to 64 letters, digits, '$', '-' and '_'")
    return poll_id


def is_global(poll_id: str) -> bool:
    """Whether the poll is open to all channels of the extension."""
    return poll_id.startswith(GLOBAL)


def checked_value(value: int) -> int:
    """-99 to 99 inclusive (ruling P2)."""
    if not LOWEST <= value <= HIGHEST:
        raise BadRequest("Value out of bounds", f"value: {value} is not within {LOWEST} to {HIGHEST}")
    return value


def checked_count(count: int) -> int:
    """How many votes at once: 1 to 30 (ruling P4)."""
    if not 1 <= count <= MOST_AT_ONCE:
        raise BadRequest("unacceptable vote", f"count: {count} is not within 1 to {MOST_AT_ONCE}")
    return count


def refusal(reason: str) -> BadRequest:
    """The error for a vote that a poll's terms refuse."""
    error = _REFUSALS[reason]
    return BadRequest(error.reason, error.detail)


def stats_of(counts: Iterable[tuple[str, int]]) -> Stats:
    """Statistics from a histogram of (value, votes) alone. The deviation is the population's, exact until the root."""
    count = total = squares = 0
    specific = [0] * COUNTED
    for choice, votes in counts:
        value = int(choice)
        weighted = value * votes
        count += votes
        total += weighted
        squares += value * weighted
        if 0 <= value < COUNTED:
            specific[value] = votes
    if not count:
        return Stats(0.0, 0.0, 0, 0, specific)
    return Stats(math.sqrt(count * squares - total * total) / count, total / count, total, count, specific)


def poll_of(counts: Iterable[tuple[str, int]], choice: str | None) -> Poll:
    """A poll's answer from what its ballot holds, and the caller's choice."""
    stats = stats_of(counts)
    vote = UNSET if choice is None else int(choice)
    return Poll(stats, stats.stddev, stats.mean, stats.sum, stats.count, stats.specific, vote)
