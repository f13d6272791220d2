"""Votes at a steady rate, from a process of their own: the load of `soak.py`."""

from __future__ import annotations

import base64
import itertools
import json
import select
import socket
import time
from collections import deque
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

from common import CLIENT_ID, Address
from load import CONNECTIONS, is_complete

USERS, POLLS, CHANNELS = 200_000, 500, 10
"""Each user votes in the polls of one channel, which has every tenth poll."""
_LONGEST_WAIT = 5.0
"""Seconds in which the last requests of a run must be answered."""


class Votes(NamedTuple):
    """One run. Latencies are in seconds."""

    answered: int
    failed: int
    p99: float


def token(**claims: str) -> str:
    """Return an `Authorization` header. The sandbox ignores the signature."""
    parts = ({"alg": "HS256", "typ": "JWT"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts)
    return f"{CLIENT_ID} {'.'.join(encoded)}.x"


def channel_of(number: int) -> str:
    """Return the channel of a poll or user."""
    return f"{7000 + number % CHANNELS}"


class _Connection:
    __slots__ = ("data", "socket", "started")

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""


class _Load:
    """All users, and how many votes they have sent."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._ends = [
            f" HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
            f"{token(role='viewer', user_id=str(user), opaque_user_id=f'U{user}', channel_id=channel_of(user))}"
            f'\r\nContent-Length: 11\r\n\r\n{{"value":{user % 5}}}'.encode()
            for user in range(USERS)
        ]
        self._numbers = itertools.count()

    def _request(self, first_poll: int) -> bytes:
        number = next(self._numbers)
        in_window = (number // USERS * CHANNELS + number) % POLLS
        # The window moves in steps of `CHANNELS`, so poll and user have the same channel.
        poll = first_poll + (in_window - first_poll) % POLLS
        return b"POST /v1/e/vote?id=p%d" % poll + self._ends[number % USERS]

    def run(self, first_poll: int, seconds: float, rate: float) -> Votes:
        """Vote in the `POLLS` polls from `first_poll` on; `rate` is the most votes per second."""
        connections = {each.socket.fileno(): each for each in (_Connection(self._address) for _ in range(CONNECTIONS))}
        idle, poll = deque(connections.values()), select.epoll()
        for descriptor in connections:
            poll.register(descriptor, select.EPOLLIN)
        latencies: list[float] = []
        sent = failed = 0
        began = time.perf_counter()
        while (now := time.perf_counter() - began) < seconds + _LONGEST_WAIT:
            is_over = now >= seconds
            if is_over and len(idle) == len(connections):
                break
            while idle and not is_over and sent < now * rate:
                connection = idle.popleft()  # in turn, because the service closes idle connections
                connection.socket.sendall(self._request(first_poll))
                connection.started = time.perf_counter()
                sent += 1
            for descriptor, _ in poll.poll(0.002):
                connection = connections[descriptor]
                data = connection.socket.recv(1 << 16)
                assert data, "the service closed a connection"
                connection.data += data
                if is_complete(connection.data):
                    latencies.append(time.perf_counter() - connection.started)
                    failed += not connection.data.startswith(b"HTTP/1.1 200")
                    connection.data = b""
                    idle.append(connection)
        poll.close()
        for connection in connections.values():
            connection.socket.close()
        latencies.sort()
        return Votes(len(latencies), failed + sent - len(latencies), latencies[int(len(latencies) * 0.99)])


def _serve(address: Address, orders: Connection) -> None:
    load = _Load(address)
    orders.send(None)
    while (order := orders.recv()) is not None:
        orders.send(load.run(*order))


class Load:
    """The process that votes. `start` begins a run, and `wait` returns its result."""

    def __init__(self, address: Address) -> None:
        self._orders, other = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=_serve, args=(address, other))
        self._process.start()
        other.close()
        self.wait()

    def start(self, first_poll: int, seconds: float, rate: float) -> None:
        self._orders.send((first_poll, seconds, rate))

    def wait(self) -> Votes:
        found: Votes = self._orders.recv()
        return found

    def close(self) -> None:
        self._orders.send(None)
        self._process.join()
