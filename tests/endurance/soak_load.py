"""Votes at a steady rate, from a process of their own: the load of `soak.py`."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection

from common import CLIENT_ID, Address
from load import Measured, load

USERS, POLLS, CHANNELS = 200_000, 500, 10
"""Each user votes in the polls of one channel, which has every tenth poll."""


def token(**claims: str) -> str:
    """Return an `Authorization` header. The sandbox ignores the signature."""
    parts = ({"alg": "HS256", "typ": "JWT"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts)
    return f"{CLIENT_ID} {'.'.join(encoded)}.x"


def channel_of(number: int) -> str:
    """Return the channel of a poll or user."""
    return f"{7000 + number % CHANNELS}"


def all_votes() -> Callable[[int], Iterator[bytes]]:
    """Prepare all users; return a function that yields votes in the `POLLS` polls from a number on."""
    ends = [
        f" HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
        f"{token(role='viewer', user_id=str(user), opaque_user_id=f'U{user}', channel_id=channel_of(user))}"
        f'\r\nContent-Length: 11\r\n\r\n{{"value":{user % 5}}}'.encode()
        for user in range(USERS)
    ]
    numbers = itertools.count()

    def votes(first_poll: int) -> Iterator[bytes]:
        for number in numbers:
            in_window = (number // USERS * CHANNELS + number) % POLLS
            # The window moves in steps of `CHANNELS`, so poll and user have the same channel.
            poll = first_poll + (in_window - first_poll) % POLLS
            yield b"POST /v1/e/vote?id=p%d" % poll + ends[number % USERS]

    return votes


def _serve(address: Address, orders: Connection) -> None:
    votes = all_votes()
    orders.send(None)
    while (order := orders.recv()) is not None:
        first_poll, seconds, rate = order
        orders.send(asyncio.run(load([address], votes(first_poll), seconds=seconds, rate=rate)))


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

    def wait(self) -> Measured:
        found: Measured = self._orders.recv()
        return found

    def close(self) -> None:
        self._orders.send(None)
        self._process.join()
