"""Moves of the clock: the moves a caller may request, and the items that the response lists. No I/O."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from emulator.core.clock import END_OF_TIME, clamp_instant
from emulator.core.errors import Conflict, Facts, Forbidden, NotFound, Unavailable, refusal
from emulator.core.keys import Expired
from emulator.core.wire.json_codec import Milliseconds
from emulator.core.wire.refusals import invalid_member

_CONTROL: Final = "docs: Control"


@refusal(Forbidden, "Cannot fork", "docs: Namespaces", "This storage cannot copy a namespace",
         "Start `extcli serve --data sqlite://`.")  # fmt: skip
def no_fork(*, engine: str) -> Facts:
    detail = f"namespaces on {engine} cannot be forked: a copy needs SQLite (serve --data sqlite://…)"
    return Facts(detail, f"data on {engine}", "data on SQLite")


@refusal(Forbidden, "Cannot undo", _CONTROL, "This service cannot keep the data for an undo",
         "Reset without undo, or start `extcli serve --data sqlite://`.")  # fmt: skip
def no_undo() -> Facts:
    return Facts("undo: this storage cannot copy data; leave undo out", "data on Redis", "data on SQLite")


@refusal(NotFound, "Nothing to undo", _CONTROL, "No reset can be undone now",
         "Keep the data at the next reset: `extcli reset --keep 1m`.")  # fmt: skip
def nothing_to_undo() -> Facts:
    detail = "undo: no reset can be undone now; `extcli reset --keep 1m` keeps the data for a minute"
    return Facts(detail, "no reset that kept its data", "a reset that kept its data, not too long ago")


@refusal(Conflict, "Nothing to undo", _CONTROL, "Only the latest reset can be undone",
         "Undo the latest reset: `extcli reset --undo`.")  # fmt: skip
def earlier_reset() -> Facts:
    detail = "undo: this is the token of an earlier reset; only the latest is kept"
    return Facts(detail, "the token of an earlier reset", "the token of the latest reset")


@refusal(Unavailable, "Service Unavailable", "docs: Restarts", "The service is starting",
         "Wait until it is ready: `extcli wait`.")  # fmt: skip
def starting() -> Facts:
    return Facts("the service is starting; try again", "a service that is starting", "a service that is ready")


SYSTEM = "system"
"""As the time to set: the system's."""


class ClockMove(Struct):
    """A move of the clock: first `set`, then `advance`. `freeze` stops or restarts the clock at the result."""

    set: int | str | None = None
    """In Unix ms, a time such as `2030-01-31T18:00:00Z`, or `system` for the system's time."""
    advance: Milliseconds | None = None
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
    """Empty for a store that all extensions share."""
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
