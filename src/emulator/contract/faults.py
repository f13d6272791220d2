"""The limits of faults, and the effects that each kind of match allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
CLOSE_CODES = ((1000, 1003), (1007, 1014), (3000, 4999))
"""The codes that a close frame may have (RFC 6455)."""


class MatchKind(NamedTuple):
    """A kind of match: endpoint, message, handshake or broadcast."""

    name: str
    """In the plural, for messages."""
    effects: Sequence[str]
    conditions: Sequence[str]


_CALLER_MEMBERS = ("role", "channel", "user", "client_id")
MATCHES: Mapping[str, MatchKind] = {
    "request": MatchKind("requests", ("status", "delay", "drop", "reset", "truncate", "stall"), _CALLER_MEMBERS),
    "message": MatchKind("messages of games", ("status", "delay", "drop", "reset", "stall", "close"), _CALLER_MEMBERS),
    "connect": MatchKind("handshakes", ("status", "delay", "drop", "reset", "stall"), ("client_id",)),
    "broadcast": MatchKind("broadcasts", ("delay", "lose", "double", "reorder"), (*_CALLER_MEMBERS, "event")),
}
