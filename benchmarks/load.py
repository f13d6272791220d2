"""Sends prepared HTTP requests over keep-alive connections, and measures the responses."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import httptools


@dataclass
class Measured:
    """One round. Latencies are in seconds."""

    per_second: float
    p50: float
    p99: float
    failed: int
    """Responses with another status than expected."""


def request(method: str, path: str, header: str, body: bytes = b"") -> bytes:
    """Return the bytes of one request."""
    lines = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: {header}\r\nContent-Length: {len(body)}\r\n\r\n"
    return lines.encode() + body


class _Connection(asyncio.Protocol):
    def __init__(
        self, requests: Iterator[bytes], latencies: list[float], done: asyncio.Future[None], status: int
    ) -> None:
        self._requests, self._latencies, self._done, self._status = requests, latencies, done, status
        self.failed = 0
        self.stopping = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)
        self._next()

    def _next(self) -> None:
        if self.stopping:
            self._transport.close()
            return
        self._started = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._latencies.append(time.perf_counter() - self._started)
        if self._parser.get_status_code() != self._status:
            self.failed += 1
        self._parser = httptools.HttpResponseParser(self)
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


async def load(
    host: str, port: int, requests: Sequence[bytes], *, connections: int, seconds: float, status: int = 200
) -> Measured:
    """Send `requests` repeatedly over `connections` for `seconds`; count responses other than `status` as failed."""
    loop = asyncio.get_running_loop()
    repeated = itertools.cycle(requests)
    latencies: list[float] = []
    protocols: list[_Connection] = []
    ends = [loop.create_future() for _ in range(connections)]
    started = time.perf_counter()
    for end in ends:
        _, protocol = await loop.create_connection(
            lambda end=end: _Connection(repeated, latencies, end, status), host, port
        )
        protocols.append(protocol)
    await asyncio.sleep(seconds)
    for protocol in protocols:
        protocol.stopping = True
    await asyncio.wait(ends, timeout=5)
    elapsed = time.perf_counter() - started
    latencies.sort()
    return Measured(
        len(latencies) / elapsed,
        latencies[len(latencies) // 2],
        latencies[int(len(latencies) * 0.99)],
        sum(protocol.failed for protocol in protocols),
    )
