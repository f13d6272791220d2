"""One connection of a pool: sends a request, and finds the end of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from extcli.simulate.answers import Head, head_of, is_complete
from extcli.simulate.work import NO_ANSWER, Measured


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
