"""Sends prepared HTTP requests over keep-alive connections, and measures the responses.

The load generator is one callback on one `epoll`, without a transport or parser per connection. So it is several times
faster than the servers, which `report.bound` checks in each run with the server `echo`.
"""

from __future__ import annotations

import asyncio
import itertools
import select
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from common import Address

CONNECTIONS = 50
_END = b"\r\n\r\n"
_LENGTH = b"content-length: "


@dataclass
class Measured:
    """One round. Latencies are in seconds."""

    answered: int
    per_second: float
    p50: float
    p99: float
    failed: int
    """Responses with another status than expected, and connections that the server closed."""
    unanswered: list[bytes] = field(default_factory=list)
    """Requests in flight when the server closed their connections."""


def request(method: str, path: str, header: str, body: bytes = b"", more: str = "") -> bytes:
    """Return the bytes of one request; `more` has further header lines, each with its line end."""
    lines = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: {header}\r\nContent-Length: {len(body)}\r\n"
    return f"{lines}{more}\r\n".encode() + body


def is_complete(response: bytes) -> bool:
    """Return whether a response ends here; one without a length is chunked."""
    end = response.find(_END)
    if end < 0:
        return False
    start = response.find(_LENGTH, 0, end)
    if start < 0:
        head = response[:end].lower()
        start = head.find(_LENGTH)
        if start < 0:
            return response.endswith(b"0\r\n\r\n")
    start += len(_LENGTH)
    return len(response) - end - 4 >= int(response[start : response.find(b"\r", start)])


class _Connection:
    __slots__ = ("data", "request", "socket", "started")
    request: bytes
    started: float

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.data = b""


class _Load:
    """The connections of one round."""

    def __init__(self, addresses: Sequence[Address], requests: Iterator[bytes], connections: int, status: int) -> None:
        self._requests = requests
        self._expected = b"HTTP/1.1 %d" % status
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        for address in itertools.islice(itertools.cycle(addresses), connections):
            connection = _Connection(address)
            self._connections[connection.socket.fileno()] = connection
            self._epoll.register(connection.socket, select.EPOLLIN)
        self.ended = self._loop.create_future()
        self.stopping = False
        self.latencies: list[float] = []
        self.failed = 0
        self.unanswered: list[bytes] = []

    def start(self) -> None:
        """Send the first request of each connection."""
        self._loop.add_reader(self._epoll.fileno(), self._receive)
        for connection in list(self._connections.values()):
            self._send(connection)

    def _send(self, connection: _Connection) -> None:
        following = None if self.stopping else next(self._requests, None)
        if following is None:
            self._close(connection)
            return
        connection.request = following
        connection.started = time.perf_counter()
        try:
            connection.socket.sendall(following)
        except ConnectionError:
            self._lost(connection)

    def _receive(self) -> None:
        for descriptor, _ in self._epoll.poll(0, len(self._connections)):
            connection = self._connections[descriptor]
            try:
                data = connection.socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                self._lost(connection)
                continue
            if connection.data:
                data = connection.data + data
            if not is_complete(data):
                connection.data = data
                continue
            self.latencies.append(time.perf_counter() - connection.started)
            if not data.startswith(self._expected):
                self.failed += 1
            connection.data = b""
            self._send(connection)

    def _lost(self, connection: _Connection) -> None:
        self.failed += 1
        self.unanswered.append(connection.request)
        self._close(connection)

    def _close(self, connection: _Connection) -> None:
        del self._connections[connection.socket.fileno()]
        self._epoll.unregister(connection.socket)
        connection.socket.close()
        if not self._connections and not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Close what is open; requests without a response have failed."""
        for connection in list(self._connections.values()):
            self._lost(connection)
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()


async def load(
    host: str,
    port: int,
    requests: Iterable[bytes],
    *,
    connections: int = CONNECTIONS,
    seconds: float,
    status: int = 200,
) -> Measured:
    """Send requests to one address; see `load_all`."""
    return await load_all([(host, port)], requests, connections=connections, seconds=seconds, status=status)


async def load_all(
    addresses: Sequence[Address],
    requests: Iterable[bytes],
    *,
    connections: int = CONNECTIONS,
    seconds: float,
    status: int = 200,
) -> Measured:
    """Send requests for `seconds` over `connections`, which are spread over the addresses.

    Each connection sends a request as soon as the one before it is answered. A collection is sent repeatedly; an
    iterator once, and the round ends earlier if it runs out. Responses with another status have failed.
    """
    once = requests if isinstance(requests, Iterator) else itertools.cycle(requests)
    this = _Load(addresses, once, connections, status)
    started = time.perf_counter()
    this.start()
    await asyncio.wait([this.ended], timeout=seconds)
    this.stopping = True
    await asyncio.wait([this.ended], timeout=5)
    elapsed = time.perf_counter() - started
    this.close()
    latencies = sorted(this.latencies)
    assert latencies, "no request was answered"
    return Measured(
        len(latencies),
        len(latencies) / elapsed,
        latencies[len(latencies) // 2],
        latencies[int(len(latencies) * 0.99)],
        this.failed,
        this.unanswered,
    )
