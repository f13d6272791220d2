"""Poll ids, vote values, the statistics of a poll, and refusals. No I/O, no clock."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import HIGHEST, LOWEST
from emulator.contract.names import POLL_ID, POLL_ID_RULE
from emulator.core.clock import WEEK
from emulator.core.errors import BadRequest, Conflict, Facts, NotFound, ServiceError, refusal
from emulator.storage.shapes import CLOSED, OVER_ALLOWANCE, UNKNOWN_VOTER

_UNACCEPTABLE: Final = "unacceptable vote"
_DEFINE: Final = "Define the poll first: `extcli vote define {poll}`."


@refusal(BadRequest, "Invalid poll id", "W8", "The poll id has the wrong form",
         "Choose another id, such as `lunch` or `global-lunch`.")  # fmt: skip
def invalid_poll_id(*, name: str, id: str) -> Facts:
    return Facts(f"{name}: must be {POLL_ID_RULE}", f'{name} "{id}"', POLL_ID_RULE)


@refusal(BadRequest, "Value out of bounds", "P2", "The value is out of bounds",
         "Send an integer from {lowest} to {highest}.")  # fmt: skip
def value_out_of_bounds(*, value: int, lowest: int, highest: int) -> Facts:
    return Facts(f"value: {value} is not within {lowest} to {highest}", f"value {value}", f"{lowest} to {highest}")


@refusal(BadRequest, _UNACCEPTABLE, "P4", "The number of votes is out of range", "Send a count from 1 to {highest}.")
def count_out_of_range(*, count: int, highest: int) -> Facts:
    return Facts(f"count: {count} is not within 1 to {highest}", f"count {count}", f"1 to {highest}")


@refusal(BadRequest, "poll is closed", "P4", "The poll is closed",
         "Look at its times with `extcli vote config {poll}`, or open it: `extcli vote reopen {poll}`.")  # fmt: skip
def poll_closed(*, poll: str) -> Facts:
    detail = "the poll has not started, has ended or is disabled"
    return Facts(detail, f"poll {poll}, which has not started, has ended or is disabled", "an open poll")


@refusal(BadRequest, _UNACCEPTABLE, "P4", "The vote exceeds what the poll allows a user",
         "Vote less often, or raise the limits: `extcli vote edit {poll}`.")  # fmt: skip
def over_allowance(*, poll: str) -> Facts:
    detail = "the vote would exceed the poll's votes per user, votes per option or options per user"
    return Facts(detail, f"a user without that many votes left in {poll}", "votes within the limits of the definition")


@refusal(BadRequest, _UNACCEPTABLE, "P4", "Only users who share their identity may vote",
         "Use a token with user_id, or allow all users: `extcli vote edit {poll}`.")  # fmt: skip
def unknown_voter(*, poll: str) -> Facts:
    detail = "only users who share their identity may vote in this poll"
    return Facts(detail, f"a token without user_id, for poll {poll}", "a token with user_id")


@refusal(Conflict, "Poll changed", "P4", "Another edit of the poll came first",
         "Read the definition again with `extcli vote config {poll}`, and repeat the edit.")  # fmt: skip
def poll_changed(*, poll: str, members: str) -> Facts:
    detail = f"expected: the definition has changed since it was read: {members}"
    return Facts(detail, f"a definition that differs from the present one: {members}", "the present definition")


@refusal(Conflict, "Poll changed", "P4", "The poll has a definition already", "Edit it: `extcli vote edit {poll}`.")
def already_defined(*, poll: str) -> Facts:
    detail = f"expected: the poll {poll} has a definition; edit that one"
    return Facts(detail, f"no definition, for poll {poll}", "the present definition")


@refusal(NotFound, "Not Found", rule="P4", title="The poll has no definition", next_step=_DEFINE)
def no_definition(*, poll: str) -> Facts:
    return Facts(f"the poll {poll} has no definition", f"poll {poll}, not defined", "a defined poll")


@refusal(NotFound, "Not Found", "P4", "There is no such poll",
         "Define the poll, or vote in it, first: `extcli vote define {poll}`.")  # fmt: skip
def no_poll(*, poll: str) -> Facts:
    return Facts(f"there is no poll {poll}", f"poll {poll}", "an existing poll")


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
