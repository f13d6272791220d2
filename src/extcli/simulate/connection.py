"""One connection of a pool: sends a request, finds the end of its answer, and measures.

It reads from an answer only what a crowd needs: its end, its status and `Retry-After`.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from extcli.api.bodies import CROWD
from extcli.api.retry import RATE_LIMITED, UNAVAILABLE

NO_ANSWER = 0
"""The status of a request without an answer: it may have been applied."""
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
    """What became of each request. Times are seconds from the start."""

    status: array[int]
    sent: array[float]
    done: array[float]
    reasons: dict[int, str] = field(default_factory=dict)
    """Why requests were refused, by index."""
    sendings: int = 0
    """Requests sent, with repetitions."""
    repeated: int = 0
    """Answers 429 or 503 after which the request was sent again."""
    repeats_at: array[float] = field(default_factory=lambda: array("d"))
    reopened: int = 0
    lag: float = 0.0
    """The most seconds by which this program itself was late to handle a request."""

    @classmethod
    def of(cls, count: int) -> Measured:
        return cls(array("H", bytes(2 * count)), array("d", bytes(8 * count)), array("d", bytes(8 * count)))


_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"
_LARGEST_HEAD = 1 << 16
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[^\r\n]*\r\n")


class Head(NamedTuple):
    """What the head of an answer says."""

    status: int
    size: int
    """Bytes of the whole answer, -1 for chunks, -2 for all until the connection is closed."""
    body_at: int
    closes: bool
    """Whether the service closes the connection after this answer."""
    retry_after: bytes | None
    """The header `Retry-After` of 429 and 503."""


def head_of(data: bytes) -> Head | None:
    """Parse the head of an answer, or return `None` if more bytes are needed. Raises `ValueError`."""
    end = data.find(_END)
    if not data.startswith(b"HTTP/1.") and (end >= 0 or not b"HTTP/1.".startswith(data)):
        raise ValueError("not HTTP/1.1")
    if end < 0:
        if len(data) > _LARGEST_HEAD:
            raise ValueError("the head is too large")
        return None
    head = data[:end].lower()
    status = int(head[9:12])
    if status < 100:
        raise ValueError("not a status")
    body_at = end + 4
    closes = b"\r\nconnection: close" in head or head.startswith(b"http/1.0")
    start = head.find(_LENGTH)
    if start >= 0:
        start += len(_LENGTH)
        stop = head.find(b"\r", start)
        size = body_at + int(head[start : stop if stop >= 0 else end])
    elif status in (204, 304) or status < 200:
        size = body_at
    elif b"\r\ntransfer-encoding: chunked" in head:
        size = -1
    else:
        size, closes = -2, True
    return Head(status, size, body_at, closes, _retry_after(head) if status in (RATE_LIMITED, UNAVAILABLE) else None)


def is_complete(data: bytes, head: Head, *, ended: bool = False) -> bool:
    """Return whether an answer ends here. `ended` says that the service has closed the connection.

    Raises `ValueError` for an answer that is too large.
    """
    if max(len(data), head.size) > CROWD:
        raise ValueError("the answer is too large")
    if head.size == -1:
        return data.endswith(_LAST_CHUNK) or data[head.body_at :] == _LAST_CHUNK[2:]
    return ended if head.size == -2 else len(data) >= head.size


def body_of(data: bytes, head: Head) -> bytes:
    """Return the body of a complete answer; up to the first chunk that is not valid."""
    if head.size != -1:
        return data[head.body_at :]
    parts, at = [], head.body_at
    while (found := _CHUNK.match(data, at)) and (size := int(found[1], 16)):
        parts.append(data[found.end() : found.end() + size])
        at = found.end() + size + 2
    return b"".join(parts)


def _retry_after(head: bytes) -> bytes | None:
    _, found, rest = head.partition(b"\r\nretry-after:")
    return rest.partition(b"\r")[0].strip() if found else None


class Owner(Protocol):
    """The pool of a connection. `now` is in seconds from the start of the run."""

    requests: Sequence[bytes]
    measured: Measured

    def now(self) -> float: ...

    def free(self, connection: Connection, now: float) -> None:
        """Take back a connection whose request is answered."""

    def lost(self, connection: Connection) -> None:
        """Forget a connection that is closed."""

    def answered(self, index: int, head: Head, data: bytes, now: float) -> None:
        """Note an answer, or send the request again later."""

    def settle(self, index: int, status: int, now: float) -> None:
        """Note the outcome of a request."""


class Connection(asyncio.Protocol):
    """One connection, with at most one request at a time."""

    __slots__ = ("_buffer", "_pool", "_transport", "closes", "index", "number", "since")
    _count = 0

    def __init__(self, pool: Owner) -> None:
        self._pool = pool
        self._buffer = b""
        self.index = -1
        """The request without an answer; -1 for none."""
        self.since = pool.now()
        """When the request was sent, or when the connection became idle."""
        self.closes = False
        Connection._count += 1
        self.number = Connection._count

    def connection_made(self, transport: Any) -> None:  # that of uvloop is no `asyncio.Transport`
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
        if self._buffer:
            data = self._buffer + data
        try:
            head = head_of(data)
            while head is not None and head.status < 200:
                data = data[head.size :]
                head = head_of(data)
            is_whole = head is not None and is_complete(data, head)
        except ValueError:
            self.abandon()
            return
        if head is None or not is_whole:
            self._buffer = data
            return
        self._answered(head, data)

    def _answered(self, head: Head, data: bytes) -> None:
        self._buffer = b""
        index, self.index = self.index, -1
        if index < 0:  # an answer to nothing
            self._transport.abort()
            return
        pool = self._pool
        self.since = now = pool.now()
        if head.closes or self.closes:
            self._transport.close()
            pool.lost(self)
        else:
            pool.free(self, now)
        pool.answered(index, head, data, now)

    def eof_received(self) -> bool:
        if self.index >= 0 and self._buffer:
            with suppress(ValueError):
                head = head_of(self._buffer)
                if head is not None and is_complete(self._buffer, head, ended=True):
                    self._answered(head, self._buffer)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        index, self.index = self.index, -1
        self._pool.lost(self)
        if index >= 0:
            self._pool.settle(index, NO_ANSWER, self._pool.now())

    def abandon(self) -> None:
        """Close the connection at once; its request has no answer."""
        self._transport.abort()
