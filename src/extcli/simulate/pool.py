"""Sends requests at planned instants over a pool of connections, and notes what became of each.

It is an open model: a request that is due is sent, or waits for a free connection, no matter how slow earlier answers
are, and its latency counts from the planned instant. Each connection has one request at a time. Requests of one viewer
wait for each other, because the last one counts.
"""

from __future__ import annotations

import asyncio
from collections import deque

from extcli import clock
from extcli.api.http import client_options, httpx
from extcli.api.retry import pause, retry_after
from extcli.errors import reason_of
from extcli.simulate.outcome import NO_RESPONSE, NOT_SENT, Measured, Work

_IDLE = 4.0
"""Seconds after which an unused connection is closed, before the service or a proxy closes it."""
_AGAIN = 0.1
"""Seconds until a connection is tried again."""
_LARGEST = 1 << 20
"""Bytes of a response. Those are short, and there are many at a time."""


class Pool:
    """Connections to one service, for one run."""

    def __init__(
        self,
        url: str,
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
        self.measured = Measured.of(len(work.at))
        self._work = work
        self._connections = connections
        self._timeout = timeout
        self._repeats = repeats
        self._pauses_all = pauses_all
        options = client_options(url, timeout)
        self._verify = options["verify"]
        self._limits = {"timeout": options["timeout"].as_dict() | {"pool": None}}
        self._queue: asyncio.Queue[int] = asyncio.Queue()
        self._behind: dict[int, deque[int]] = {}
        """The later requests of each viewer whose earlier request has no response yet."""
        self.finished = 0
        self._paused_until = 0.0
        self._away_since: float | None = None
        self._churned: set[int] = set()
        self._started = 0.0
        self._ended = asyncio.Event()

    async def run(self) -> Measured:
        """Send all requests, wait for their responses, and close the connections."""
        self._started = clock.elapsed()
        count = len(self._work.at)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._send_queued(number)) for number in range(min(count, self._connections))]
            tasks.append(group.create_task(self._churn()))
            await self._submit_all()
            while self.finished < count:
                await self._ended.wait()
            for task in tasks:
                task.cancel()
        return self.measured

    def _now(self) -> float:
        """Return the seconds since the start."""
        return clock.elapsed() - self._started

    async def _submit_all(self) -> None:
        for index, at in enumerate(self._work.at):
            now = self._now()
            if now < at:
                await asyncio.sleep(at - now)
                now = self._now()
            self.measured.lag = max(self.measured.lag, now - at)
            viewer = self._work.viewer[index]
            if viewer in self._behind:
                self._behind[viewer].append(index)
            else:
                self._behind[viewer] = deque()
                self._queue.put_nowait(index)

    async def _churn(self) -> None:
        for at, share in self._work.reopen_at:
            await asyncio.sleep(max(at - self._now(), 0))
            self._churned.add(int(share * self._connections))

    async def _send_queued(self, number: int) -> None:
        """Send requests over one connection, which opens at the first one."""
        transport = self._transport()
        try:
            while True:
                index = await self._queue.get()
                if (left := self._paused_until - self._now()) > 0:
                    await asyncio.sleep(left)
                if number in self._churned:
                    self._churned.remove(number)
                    self.measured.reopened += 1
                    await transport.aclose()
                    transport = self._transport()
                await self._send(transport, index)
        finally:
            await transport.aclose()

    def _transport(self) -> httpx.AsyncHTTPTransport:
        # One for each connection: a pool of httpx looks at all its connections for each request.
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=_IDLE)
        return httpx.AsyncHTTPTransport(verify=self._verify, trust_env=False, limits=limits)

    async def _send(self, transport: httpx.AsyncHTTPTransport, index: int) -> None:
        request, measured, now = self._work.request(index), self.measured, self._now()
        request.extensions = self._limits
        status, after, body = NO_RESPONSE, None, b""
        try:
            response = await transport.handle_async_request(request)
            status, after = response.status_code, response.headers.get("retry-after")
            body = await _body_of(response)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            await self._wait_for_service(index)
            return
        except httpx.HTTPError:  # a refusal is one even if its body never ends
            status = status if status >= 300 else NO_RESPONSE
        self._away_since = None
        measured.sent[index] = measured.sent[index] or now
        measured.sendings += 1
        now = self._now()
        wait = pause(after) if status in self._repeats and retry_after(after) is not None else None
        if wait is None or now + wait >= measured.sent[index] + self._timeout:
            self._settle(index, status, now, body)
            return
        measured.repeated += 1
        measured.repeats_at.append(now)
        if self._pauses_all:
            self._paused_until = max(self._paused_until, now + wait)
        asyncio.get_running_loop().call_later(wait, self._queue.put_nowait, index)

    async def _wait_for_service(self, index: int) -> None:
        """Let a request wait that found no connection. If none could be opened for too long, give it up."""
        now = self._now()
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since >= self._timeout:
            self._settle(index, NOT_SENT, now, b"")
            return
        await asyncio.sleep(_AGAIN)
        self._queue.put_nowait(index)

    def _settle(self, index: int, status: int, now: float, body: bytes) -> None:
        """Record the final outcome of a request."""
        self.measured.status[index] = status
        self.measured.done[index] = now
        if status >= 300:
            self.measured.reasons[index] = reason_of(body)
        viewer = self._work.viewer[index]
        if self._behind[viewer]:
            self._queue.put_nowait(self._behind[viewer].popleft())
        else:
            del self._behind[viewer]
        self.finished += 1
        if self.finished == len(self._work.at):
            self._ended.set()


async def _body_of(response: httpx.Response) -> bytes:
    """Return the body of a response. Raises `httpx.HTTPError`, also if it is too large."""
    body = bytearray()
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _LARGEST:
                raise httpx.ReadError("the response is too large")
    finally:
        await response.aclose()
    return bytes(body)
