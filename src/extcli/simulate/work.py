"""The requests of a run, where they go, and what is measured of each."""

from __future__ import annotations

import ssl
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

NO_RESPONSE = 0
"""The status of a request without a response: it may have been applied."""
NOT_SENT = 1
"""The status of a request that found no connection."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Requests, each with its sender and its planned instant in seconds from the start."""

    requests: Sequence[bytes]
    viewer: Sequence[int]
    at: Sequence[float]
    viewers: int
    reopen_at: Sequence[tuple[float, float]] = ()
    """When a connection is closed and opened again, and which: a share of the pool, 0 to 1."""


@dataclass(slots=True)
class Measured:
    """The outcome of each request. Times are seconds from the start."""

    status: array[int]
    sent: array[float]
    done: array[float]
    reasons: dict[int, str] = field(default_factory=dict)
    """Why requests were refused, by index."""
    sendings: int = 0
    """Requests sent, with repetitions."""
    repeated: int = 0
    """Responses with 429 or 503 after which the request was sent again."""
    repeats_at: array[float] = field(default_factory=lambda: array("d"))
    reopened: int = 0
    lag: float = 0.0
    """The most seconds by which this program itself was late to handle a request."""

    @classmethod
    def of(cls, count: int) -> Measured:
        return cls(array("H", bytes(2 * count)), array("d", bytes(8 * count)), array("d", bytes(8 * count)))
