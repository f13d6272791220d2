"""Sends prepared HTTP requests over keep-alive connections, and measures the responses.

The load generator is one callback on one `epoll`, without a transport or parser per connection. So it is several times
faster than the servers, which `rounds.Results` checks in each run with the server `echo`.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import select
import socket
import time
from collections import deque
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
    p99: float
    failed: int
    """Responses with another status than expected, and connections that the server closed."""
    unanswered: list[bytes] = field(default_factory=list)
    """Requests in flight when the server closed their connections."""


def request(method: str, path: str, header: str, body: bytes = b"", more: str = "") -> bytes:
    """Return the bytes of one request; `more` has further header lines, each with its line end."""
    lines = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: {header}\r\nContent-Length: {len(body)}\r\n"
    return f"{lines}{more}\r\n".encode() + body


def is_complete(response: bytes | bytearray) -> bool:
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

    def __init__(
        self, addresses: Sequence[Address], requests: Iterator[bytes], connections: int, status: int, rate: float
    ) -> None:
        self._requests = requests
        self._expected = b"HTTP/1.1 %d" % status
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        for address in itertools.islice(itertools.cycle(addresses), connections):
            connection = _Connection(address)
            self._connections[connection.socket.fileno()] = connection
            self._epoll.register(connection.socket, select.EPOLLIN)
        self._rate = rate
        self._sent = 0
        self._idle: deque[_Connection] = deque()
        """Connections that wait their turn."""
        self._stopping = False
        self.ended = self._loop.create_future()
        self.latencies: list[float] = []
        self.failed = 0
        self.unanswered: list[bytes] = []

    def start(self) -> None:
        """Send the first request of each connection."""
        self._began = time.perf_counter()
        self._loop.add_reader(self._epoll.fileno(), self._receive)
        for connection in list(self._connections.values()):
            self._send(connection)
        if self._rate < math.inf:
            self._send_due()

    def stop(self) -> None:
        """Send no further requests."""
        self._stopping = True
        while self._idle:
            self._close(self._idle.popleft())

    def _is_due(self) -> bool:
        return self._sent < (time.perf_counter() - self._began) * self._rate

    def _send_due(self) -> None:
        while self._idle and self._is_due():
            self._send(self._idle.popleft())
        if not self._stopping:
            self._loop.call_later(0.001, self._send_due)

    def _send(self, connection: _Connection) -> None:
        if self._rate < math.inf and not self._stopping and not self._is_due():
            self._idle.append(connection)
            return
        following = None if self._stopping else next(self._requests, None)
        if following is None:
            self._close(connection)
            return
        self._sent += 1
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
    addresses: Sequence[Address],
    requests: Iterable[bytes],
    *,
    connections: int = CONNECTIONS,
    seconds: float,
    status: int = 200,
    rate: float = math.inf,
) -> Measured:
    """Send requests for `seconds` over `connections`, which are spread over the addresses.

    Each connection sends a request as soon as the one before it is answered, or waits its turn if all of them would
    send more than `rate` requests per second. A collection is sent repeatedly; an iterator once, and the round ends
    earlier if it runs out. Responses with another status have failed.
    """
    once = requests if isinstance(requests, Iterator) else itertools.cycle(requests)
    this = _Load(addresses, once, connections, status, rate)
    started = time.perf_counter()
    this.start()
    await asyncio.wait([this.ended], timeout=seconds)
    this.stop()
    await asyncio.wait([this.ended], timeout=5)
    elapsed = time.perf_counter() - started
    this.close()
    latencies = sorted(this.latencies)
    assert latencies, "no request was answered"
    return Measured(
        len(latencies),
        len(latencies) / elapsed,
        latencies[int(len(latencies) * 0.99)],
        this.failed,
        this.unanswered,
    )
