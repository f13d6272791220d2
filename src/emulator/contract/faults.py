"""The limits of faults, and the effects that each kind of match allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

MAX_FAULTS = 100
MAX_TEXT_LENGTH = 256
"""Characters in a match or a condition."""
VALUE_RANGES: Mapping[str, tuple[int, int]] = {
    "status": (400, 599),
    "retry_after": (0, 86_400),
    "delay": (0, 600_000),
    "delay_max": (0, 600_000),
    "bytes": (0, 1 << 30),
    "times": (1, 1_000_000_000),
    "lasts": (1, 31_536_000_000_000),
    "seed": (-(1 << 63), (1 << 63) - 1),
}
"""The least and the largest value of each member. Times are in ms, but `retry_after` in seconds."""
CLOSE_CODES = "1000 to 1003, 1007 to 1014, 3000 to 4999"
"""The codes that a close frame may have (RFC 6455)."""
DEFAULT_STATUS = 503
DEFAULT_CLOSE_CODE = 1012
"""The close code for a service that restarts. In the Pusher protocol, 4000 to 4099 forbid pages to reconnect."""
EFFECTS = ("status", "delay", "drop", "reset", "truncate", "stall", "close", "lose", "double", "reorder")
"""A fault has exactly one of these."""
CONDITIONS = ("role", "channel", "user", "client_id", "event")
"""The members that limit a fault to some callers or events."""


class MatchKind(NamedTuple):
    """A kind of match: endpoint, message, handshake or broadcast."""

    name: str
    """In the plural, for messages."""
    effects: Sequence[str]
    conditions: Sequence[str]


_CALLER_MEMBERS = CONDITIONS[:-1]
MATCHES: Mapping[str, MatchKind] = {
    "request": MatchKind("requests", ("status", "delay", "drop", "reset", "truncate", "stall"), _CALLER_MEMBERS),
    "message": MatchKind("messages of games", ("status", "delay", "drop", "reset", "stall", "close"), _CALLER_MEMBERS),
    "connect": MatchKind("handshakes", ("status", "delay", "drop", "reset", "stall"), ("client_id",)),
    "broadcast": MatchKind("broadcasts", ("delay", "lose", "double", "reorder"), CONDITIONS),
}


def is_close_code(code: int) -> bool:
    """Whether a close frame may have this code."""
    return 1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999


def effect_text(fault: Mapping[str, Any], duration_text: Callable[[int], str]) -> str:
    """Return what a fault does: `status 503, retry after 1 s`."""
    effect = str(fault["effect"])
    if effect == "status":
        after = fault["retry_after"]
        status = f"status {fault['status'] or DEFAULT_STATUS}"
        return status if after is None else f"{status}, retry after {after} s"
    if effect == "delay":
        delay, longest = f"delay {duration_text(fault['delay'])}", fault["delay_max"]
        return delay if longest is None else f"{delay} to {duration_text(longest)}"
    if effect == "truncate":
        return f"truncate after {fault['bytes'] or 0} bytes"
    if effect == "close":
        return f"close {fault['code'] or DEFAULT_CLOSE_CODE}"
    return effect


def remaining_limits(fault: Mapping[str, Any], instant_text: Callable[[int], str]) -> str:
    """Return how much longer a fault acts: `2 of 3`, `10% at random`, `until 20:15:00Z`; empty if nothing limits it."""
    limits = []
    if fault["left"] is not None:
        limits.append(f"{fault['left']} of {fault['times']}")
    if fault["share"] is not None:
        limits.append(f"{fault['share'] * 100:.4g}% at random")
    if fault["ends_at"] is not None:
        limits.append(f"until {instant_text(fault['ends_at'])}")
    return ", ".join(limits)
