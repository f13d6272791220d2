"""Moves of the clock: the moves a caller may request, and the items that the response lists. No I/O."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from msgspec import Struct

from emulator.clock import END_OF_TIME, clamp_instant
from emulator.engines.shapes import Expired
from emulator.wire.refusals import invalid_member

SYSTEM = "system"
"""As the time to set: the system's."""


class ClockMove(Struct):
    """A move of the clock: first `set`, then `advance`. `freeze` stops or restarts the clock at the result."""

    set: int | str | None = None
    """In Unix ms, a time such as `2030-01-31T18:00:00Z`, or `system` for the system's time."""
    advance: int | None = None
    """In ms, 0 or more."""
    freeze: bool | None = None


class ClockRecord(Struct):
    """The service's time in Unix ms, and its offset from the system time in ms."""

    now: int
    offset: int
    frozen: bool


class ExpiredItem(Struct):
    """An item that expired at `at`, in Unix ms."""

    kind: str
    id: str
    at: int
    client_id: str
    channel_id: str


class MovedClock(ClockRecord):
    """The clock after a move, and the records that have expired since the previous move, oldest first."""

    expired: list[ExpiredItem]


def target_of(move: ClockMove, now: int) -> int | None:
    """Return the instant to set; `None` for the present or the system's time, which `now` is.

    Raises `BadRequest` for a negative `advance`, or outside the years 1970 to 9999.
    """
    if move.advance is not None and move.advance < 0:
        raise invalid_member("advance", move.advance, "0 or more ms; use set to move the clock back")
    chosen = None if move.set in (None, SYSTEM) else instant_of(move.set)
    target = (now if chosen is None else chosen) + (move.advance or 0)
    if target != clamp_instant(target):
        needed = f"within 0 to {END_OF_TIME - 1} ms"
        raise invalid_member("set, advance", target, needed, f"the clock would be at {target} ms, not {needed}")
    return chosen


def item_of(expired: Expired) -> ExpiredItem:
    """Return an expiry for the response. If the record has no name, `id` is its user, channel or extension."""
    key = expired.key
    name = key.name or key.user or key.channel or key.owner
    return ExpiredItem(key.kind, name, expired.at, key.owner, key.channel or "")


def instant_of(given: int | str) -> int:
    """Return an instant in Unix ms: a number as it is, or a date and time in ISO 8601, in UTC without an offset.

    Raises `BadRequest`.
    """
    if isinstance(given, int):
        return given
    if re.fullmatch("-?[0-9]{1,19}", given):
        return int(given)
    try:
        instant = datetime.fromisoformat(given)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise invalid_member("set", given, "Unix ms, a time such as 2030-01-31T18:00:00Z, or system") from None
