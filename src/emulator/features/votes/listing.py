"""Polls in a listing. No I/O."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.engines.shapes import ListedBallot
from emulator.features.votes.definitions import Definition, status_of
from emulator.features.votes.rules import LIFETIME


class ListedPoll(Struct):
    """One poll."""

    id: str
    channel_id: str
    """Empty for a poll of no channel, such as a global one."""
    count: int
    """All votes."""
    status: str
    """`pending`, `active` or `expired`; `active` without a definition."""
    latest: int
    """Unix ms of the latest vote; 0 if there is none."""
    disabled: bool | UnsetType = UNSET
    """`true` if it refuses votes, whatever its status; else absent."""


class PollList(Struct):
    """Polls by channel, then id."""

    polls: list[ListedPoll]
    next: str
    """The cursor of the next page; `0` if there is none."""


def listed_poll(ballot: ListedBallot, *, now: int) -> ListedPoll:
    """Return a ballot as a poll of a listing. The latest vote was a week before the ballot's expiry."""
    status, disabled = "active", False
    if ballot.definition is not None:
        definition = msgspec.json.decode(ballot.definition, type=Definition)
        status, disabled = status_of(definition, now=now), definition.disabled
    latest = ballot.expires_at - LIFETIME if ballot.casts else 0
    return ListedPoll(ballot.key.name, ballot.key.channel or "", ballot.casts, status, latest, disabled or UNSET)
