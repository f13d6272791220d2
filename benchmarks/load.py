"""A load of ready-made HTTP requests over kept-alive connections, and what it measured."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import httptools


@dataclass
class Measured:
    """One round."""

    per_second: float
    p50: float
    p99: float
    failed: int
    """Answers that were not 200."""


def request(method: str, path: str, header: str, body: bytes = b"") -> bytes:
    """The bytes of one request."""
    lines = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: {header}\r\nContent-Length: {len(body)}\r\n\r\n"
    return lines.encode() + body


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], latencies: list[float], done: asyncio.Future[None]) -> None:
        self._requests, self._latencies, self._done = requests, latencies, done
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
        self._began = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._latencies.append(time.perf_counter() - self._began)
        if self._parser.get_status_code() != 200:
            self.failed += 1
        self._parser = httptools.HttpResponseParser(self)
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


async def load(host: str, port: int, requests: Sequence[bytes], *, connections: int, seconds: float) -> Measured:
    """Send `requests` round and round on so many connections for so long."""
    loop = asyncio.get_running_loop()
    endless = itertools.cycle(requests)
    latencies: list[float] = []
    protocols: list[_Connection] = []
    ends = [loop.create_future() for _ in range(connections)]
    began = time.perf_counter()
    for end in ends:
        _, protocol = await loop.create_connection(lambda end=end: _Connection(endless, latencies, end), host, port)
        protocols.append(protocol)
    await asyncio.sleep(seconds)
    for protocol in protocols:
        protocol.stopping = True
    await asyncio.wait(ends, timeout=5)
    took = time.perf_counter() - began
    latencies.sort()
    return Measured(
        len(latencies) / took,
        latencies[len(latencies) // 2],
        latencies[int(len(latencies) * 0.99)],
        sum(protocol.failed for protocol in protocols),
    )
