"""Poll ids, vote values and the statistics of a poll. No I/O, no clock."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from msgspec import UNSET, Struct, UnsetType

from emulator.clock import WEEK
from emulator.contract.limits import HIGHEST, LOWEST
from emulator.contract.names import POLL_ID
from emulator.engines.shapes import CLOSED, OVER_ALLOWANCE, UNKNOWN_VOTER
from emulator.errors import ServiceError
from emulator.features.votes.refusals import (
    count_out_of_range,
    invalid_poll_id,
    over_allowance,
    poll_closed,
    unknown_voter,
    value_out_of_bounds,
)

LIFETIME = WEEK
"""A poll expires this long after its last vote, in ms (Limits, ruling P5)."""
SPECIFIC_VALUES = 64
"""`specific` counts the values 0 to 63."""
MAX_COUNT = 30
"""Votes in one request."""
_VALUES = {str(value): value for value in range(LOWEST, HIGHEST + 1)}
"""The values by their text, which an engine stores; a lookup costs a third of `int`."""

_POLL_ID = re.compile(POLL_ID)
_REFUSALS: Mapping[str, Callable[..., ServiceError]] = {
    CLOSED: poll_closed,
    OVER_ALLOWANCE: over_allowance,
    UNKNOWN_VOTER: unknown_voter,
}
"""The meaning of each refusal of a vote by an engine. Each is about one poll."""


class Stats(Struct):
    """The statistics over all votes of a poll."""

    stddev: float
    mean: float
    sum: int
    count: int
    specific: list[int]


class Poll(Struct):
    """The response of GET and POST `vote`: `stats`, and the same fields at the top level (ruling P1)."""

    stats: Stats
    stddev: float
    mean: float
    sum: int
    count: int
    specific: list[int]
    vote: int | UnsetType = UNSET
    """The caller's latest vote; absent if there is none."""


@lru_cache(maxsize=1024)
def checked_poll_id(poll_id: str, name: str = "id") -> str:
    """Return a valid poll id (ruling W8); raises `BadRequest` for an invalid one. `name` is the member that has it."""
    if not _POLL_ID.fullmatch(poll_id):
        raise invalid_poll_id(name=name, id=poll_id[:64])
    return poll_id


def checked_value(value: int) -> int:
    """Return a vote's value within -99 to 99 (ruling P2); raises `BadRequest` for any other."""
    if not LOWEST <= value <= HIGHEST:
        raise value_out_of_bounds(value=value, lowest=LOWEST, highest=HIGHEST)
    return value


def checked_count(count: int) -> int:
    """Return the number of votes in one request, 1 to 30 (ruling P4); raises `BadRequest` for any other."""
    if not 1 <= count <= MAX_COUNT:
        raise count_out_of_range(count=count, highest=MAX_COUNT)
    return count


def refused_vote(poll_id: str, reason: str) -> ServiceError:
    """Return the error for a vote that the engine refused: `CLOSED`, `OVER_ALLOWANCE` or `UNKNOWN_VOTER`."""
    return _REFUSALS[reason](poll=poll_id)


def stats_of(counts: Iterable[tuple[str, int]]) -> Stats:
    """Return statistics of a histogram of (value, votes). Integer arithmetic keeps the population variance exact."""
    count = total = squares = 0
    specific = [0] * SPECIFIC_VALUES
    for choice, votes in counts:
        value = _VALUES[choice]
        weighted = value * votes
        count += votes
        total += weighted
        squares += value * weighted
        if 0 <= value < SPECIFIC_VALUES:
            specific[value] = votes
    if not count:
        return Stats(0.0, 0.0, 0, 0, specific)
    return Stats(math.sqrt(count * squares - total * total) / count, total / count, total, count, specific)


def poll_of(counts: Iterable[tuple[str, int]], choice: str | None) -> Poll:
    """Return the response for a ballot's histogram and the caller's choice."""
    stats = stats_of(counts)
    vote = UNSET if choice is None else int(choice)
    return Poll(stats, stats.stddev, stats.mean, stats.sum, stats.count, stats.specific, vote)
