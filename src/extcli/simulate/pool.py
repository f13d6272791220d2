"""Sends prepared requests at planned instants over a pool of connections, and notes what became of each.

It is an open model: a request that is due is sent, or waits for a free connection, no matter how slow earlier answers
are, and its latency counts from the planned instant. Each connection has one request at a time. Requests of one viewer
wait for each other, because the last one counts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

from extcli import clock
from extcli.api.bodies import CROWD
from extcli.api.local_http import Failed, ResponseReader
from extcli.api.retry import pause, retry_after
from extcli.errors import reason_of
from extcli.simulate.work import NO_RESPONSE, NOT_SENT, Measured, Target, Work

_IDLE = 4.0
"""Seconds after which an unused connection is closed, before the service or a proxy closes it."""
_SWEEP = 0.1
_CONNECT = 5.0


class Connection(asyncio.Protocol):
    """One connection, with at most one request at a time."""

    __slots__ = ("_pool", "_response", "_transport", "closes", "index", "number", "since")
    _count = 0

    def __init__(self, pool: Pool) -> None:
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


class Pool:
    """Connections to one service, for one run."""

    def __init__(
        self,
        target: Target,
        work: Work,
        *,
        connections: int,
        timeout: float,
        repeats: frozenset[int] = frozenset(),
        pauses_all: bool = False,
    ) -> None:
        """`timeout` is the seconds to wait for a response, and for a refusing service to accept a request at last.

        `repeats` are the statuses after which a request is sent again, if the response has `Retry-After`. `pauses_all`
        lets every request wait then, not only the refused viewer's.
        """
        self.measured = Measured.of(len(work.requests))
        self.requests = work.requests
        self._target = target
        self._work = work
        self._limit = connections
        self._timeout = timeout
        self._repeats = repeats
        self._pauses_all = pauses_all
        self._loop = asyncio.get_running_loop()
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._opening = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._queue: deque[int] = deque()
        self._busy = bytearray(work.viewers)
        self._behind: dict[int, deque[int]] = {}
        """The requests of viewers whose earlier request has no response yet."""
        self._next = 0
        self.finished = 0
        self._paused_until = 0.0
        self._cannot_connect_since: float | None = None
        self._started = 0.0
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._churned = 0

    async def open(self, count: int) -> None:
        """Open connections. Raises `OSError` or `TimeoutError` if one cannot be opened."""
        await asyncio.gather(*(self._connect() for _ in range(min(count, self._limit))))

    async def run(self) -> Measured:
        """Send all requests, wait for their responses, and close the connections."""
        self._started = clock.elapsed()
        for connection in self._all:
            connection.since = 0.0
        if self._work.requests:
            sweeping = self._loop.create_task(self._sweep())
            self._tick()
            try:
                await self._ended
            finally:
                sweeping.cancel()
        return self.measured

    def close(self) -> None:
        """Close all connections."""
        for task in self._tasks:
            task.cancel()
        for connection in list(self._all):
            connection.abandon()

    def now(self) -> float:
        """Return the seconds since the start."""
        return clock.elapsed() - self._started

    # Requests

    def _tick(self) -> None:
        """Send the requests that are due, and schedule the next call."""
        now = self.now()
        at, index, end = self._work.at, self._next, len(self._work.requests)
        while index < end and at[index] <= now:
            if now - at[index] > self.measured.lag:
                self.measured.lag = now - at[index]
            self._submit(index, now)
            index += 1
        self._next = index
        if index < end:
            self._loop.call_later(max(at[index] - self.now(), 0), self._tick)

    def _submit(self, index: int, now: float) -> None:
        viewer = self._work.viewer[index]
        if self._busy[viewer]:
            self._behind.setdefault(viewer, deque()).append(index)
            return
        self._busy[viewer] = 1
        self._send_or_queue(index, now)

    def _send_or_queue(self, index: int, now: float) -> None:
        if self._idle and not self._queue and not self._paused_until:
            self._idle.pop().send(index, now)
            return
        self._queue.append(index)
        if not self._idle:
            self._open_more()

    def _drain(self, now: float) -> None:
        while self._queue and self._idle and not self._paused_until:
            self._idle.pop().send(self._queue.popleft(), now)

    def settle(self, index: int, status: int, now: float, body: bytes = b"") -> None:
        """Record the final outcome of a request."""
        measured = self.measured
        measured.status[index] = status
        measured.done[index] = now
        if status >= 300:
            measured.reasons[index] = reason_of(body)
        viewer = self._work.viewer[index]
        behind = self._behind.get(viewer)
        if behind:
            following = behind.popleft()
            if not behind:
                del self._behind[viewer]
            self._send_or_queue(following, now)
        else:
            self._busy[viewer] = 0
        self.finished += 1
        if self.finished == len(self._work.requests) and not self._ended.done():
            self._ended.set_result(None)

    def on_response(self, index: int, response: ResponseReader, now: float) -> None:
        """Record a response, or schedule the request to be sent again."""
        wait = self._pause_after(response)
        if wait is not None and now + wait < self.measured.sent[index] + self._timeout:
            self.measured.repeated += 1
            self.measured.repeats_at.append(now)
            if self._pauses_all:
                self._pause(now + wait)
                self._queue.appendleft(index)
            else:
                self._loop.call_later(wait, self._send_again, index)
            return
        self.settle(index, response.status, now, bytes(response.body) if response.status >= 300 else b"")

    def _pause_after(self, response: ResponseReader) -> float | None:
        """Return the seconds after which a refused request is sent again; `None` for never."""
        if response.status not in self._repeats or retry_after(response.retry_after) is None:
            return None
        return pause(response.retry_after)

    def _send_again(self, index: int) -> None:
        self._send_or_queue(index, self.now())

    def _pause(self, until: float) -> None:
        if until > self._paused_until:
            self._paused_until = until
            self._loop.call_later(until - self.now(), self._send_next)

    def _send_next(self) -> None:
        now = self.now()
        if now >= self._paused_until - 0.002:
            self._paused_until = 0.0
            self._drain(now)
            if self._queue:
                self._open_more()

    # Connections

    def free(self, connection: Connection, now: float) -> None:
        """Return a connection to the pool after the response to its request."""
        self._idle.append(connection)
        if self._queue:
            self._drain(now)

    def lost(self, connection: Connection) -> None:
        """Remove a closed connection from the pool."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._queue:
            self._open_more()

    def _open_more(self) -> None:
        """Open connections for waiting requests, up to the limit."""
        wanted = min(len(self._queue), self._limit - len(self._all)) - self._opening
        for _ in range(wanted if self._paused_until == 0.0 else 0):
            task = self._loop.create_task(self._connect_for_queue())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect_for_queue(self) -> None:
        try:
            await self._connect()
        except (OSError, TimeoutError):
            await self._not_connected()

    async def _connect(self) -> None:
        self._opening += 1
        try:
            async with asyncio.timeout(_CONNECT):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self), self._target.host, self._target.port, ssl=self._target.tls
                )
        finally:
            self._opening -= 1
        self._cannot_connect_since = None
        self._all.add(connection)
        self.free(connection, self.now())

    async def _not_connected(self) -> None:
        """Try to connect again. If no connection could be opened for too long, give up waiting requests."""
        now = self.now()
        if self._cannot_connect_since is None:
            self._cannot_connect_since = now
        if now - self._cannot_connect_since >= self._timeout:
            while self._queue:
                self.settle(self._queue.popleft(), NOT_SENT, now)
            return
        await asyncio.sleep(_SWEEP)
        if self._queue:
            self._open_more()

    async def _sweep(self) -> None:
        """End requests without a response in time, close connections that idle, and open churned ones again."""
        while True:
            await asyncio.sleep(_SWEEP)
            now = self.now()
            for connection in list(self._all):
                if connection.index >= 0:
                    if now - connection.since > self._timeout:
                        connection.abandon()
                elif now - connection.since > _IDLE:
                    self._drop(connection)
            reopen = self._work.reopen_at
            while self._churned < len(reopen) and reopen[self._churned][0] <= now:
                self._reopen(reopen[self._churned][1])
                self._churned += 1

    def _reopen(self, share: float) -> None:
        """Close a connection: an idle one now, to open it again at once, a busy one after its response."""
        ordered = sorted(self._all, key=lambda each: each.number)
        if not ordered:
            return
        connection = ordered[int(share * len(ordered))]
        self.measured.reopened += 1
        connection.closes = True
        if connection.index < 0:
            self._drop(connection)
            task = self._loop.create_task(self._connect_for_queue())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _drop(self, connection: Connection) -> None:
        """Close an idle connection, and remove it from the pool."""
        self.lost(connection)
        connection.abandon()
