"""One connection of a pool: sends a request, finds the end of its response, and measures the time."""

from __future__ import annotations

import asyncio
import ssl
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from extcli.api.bodies import CROWD
from extcli.api.local_http import Failed, ResponseReader

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


class Owner(Protocol):
    """The pool of a connection. `now` is in seconds from the start of the run."""

    requests: Sequence[bytes]
    measured: Measured

    def now(self) -> float: ...

    def free(self, connection: Connection, now: float) -> None:
        """Return a connection to the pool after the response to its request."""

    def lost(self, connection: Connection) -> None:
        """Remove a closed connection from the pool."""

    def on_response(self, index: int, response: ResponseReader, now: float) -> None:
        """Record a response, or schedule the request to be sent again."""

    def settle(self, index: int, status: int, now: float) -> None:
        """Record the final outcome of a request."""


class Connection(asyncio.Protocol):
    """One connection, with at most one request at a time."""

    __slots__ = ("_pool", "_response", "_transport", "closes", "index", "number", "since")
    _count = 0

    def __init__(self, pool: Owner) -> None:
        self._pool = pool
        self._response = ResponseReader(CROWD)
        self.index = -1
        """The request without a response; -1 for none."""
        self.since = pool.now()
        """When the request was sent, or when the connection became idle."""
        self.closes = False
        Connection._count += 1
        self.number = Connection._count

    def connection_made(self, transport: Any) -> None:  # uvloop's is not an `asyncio.Transport`
        self._transport: asyncio.Transport = transport

    def send(self, index: int, now: float) -> None:
        """Send a request."""
        pool = self._pool
        self.index = index
        self.since = now
        measured = pool.measured
        if not measured.sent[index]:
            measured.sent[index] = now
        measured.sendings += 1
        self._transport.write(pool.requests[index])

    def data_received(self, data: bytes) -> None:
        try:
            self._response.feed(data)
        except Failed:
            self.abandon()
            return
        if self._response.is_complete:
            self._finish_response()

    def _finish_response(self) -> None:
        index, self.index = self.index, -1
        if index < 0:  # a response to nothing
            self._transport.abort()
            return
        pool, response = self._pool, self._response
        self.since = now = pool.now()
        if response.closes or self.closes:
            self._transport.close()
            pool.lost(self)
        else:
            pool.free(self, now)
        pool.on_response(index, response, now)
        response.reset()

    def eof_received(self) -> bool:
        with suppress(Failed):
            self._response.end()
            self._finish_response()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        index, self.index = self.index, -1
        self._pool.lost(self)
        if index >= 0:  # a refusal is one even if its body never ends
            status = self._response.status
            self._pool.settle(index, status if status >= 300 else NO_RESPONSE, self._pool.now())

    def abandon(self) -> None:
        """Close the connection at once, because its request has no complete response."""
        self._transport.abort()
