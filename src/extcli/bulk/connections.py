"""Connections for many requests at a time, the order of those of one user, and their errors. Crowds use them too."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, TypeVar

from extcli.api.http import httpx
from extcli.errors import CliError

Connection = TypeVar("Connection", bound=httpx.AsyncClient | httpx.AsyncHTTPTransport)
T = TypeVar("T")

_KEEPALIVE_SECONDS = 4.0
"""Seconds after which an unused connection is closed, before the service or a proxy closes it."""


ONE_CONNECTION = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=_KEEPALIVE_SECONDS)
"""The limits of a client with one connection.

In a shared client every request searches all connections at each step, which costs more than the request itself.
"""


class ConnectionPool(Generic[Connection]):
    """Connections to one service, each for one request at a time. They open on first use."""

    def __init__(self, make: Callable[[], Connection], count: int, *, in_turn: bool = False) -> None:
        """`in_turn` uses all connections one after the other, otherwise only as many as are needed."""
        self._make = make
        self._all = [make() for _ in range(count)]
        self._in_turn = in_turn
        self._free = deque(range(count))
        self._permits = asyncio.Semaphore(count)
        """Gives connections to those who wait longest, unlike an `asyncio.Queue`."""

    @asynccontextmanager
    async def acquire(self, *, reopens: bool = False) -> AsyncIterator[Connection]:
        """Wait for a free connection, and hold it during the block. `reopens` closes it first, and opens it again."""
        async with self._permits:
            number = self._free.popleft() if self._in_turn else self._free.pop()
            try:
                if reopens:
                    await self._all[number].aclose()
                    self._all[number] = self._make()
                yield self._all[number]
            finally:
                self._free.append(number)

    async def close(self) -> None:
        """Close all connections."""
        for each in self._all:
            await each.aclose()


@contextmanager
def raise_first_error() -> Iterator[None]:
    """Raise one error instead of a group of those of tasks, at first one that is a bug.

    A broken pipe is none: it ends a command quietly.
    """
    try:
        yield
    except BaseExceptionGroup as errors:  # not `except*`: on Python 3.11.2 the error raised there is lost
        found: BaseException = errors.split((CliError, BrokenPipeError))[1] or errors
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        raise found from None


class PerUserQueue(Generic[T]):
    """Handles items in tasks of a group: those of one user one after the other, those of others at the same time."""

    def __init__(self, group: asyncio.TaskGroup, handle: Callable[[T], Awaitable[None]]) -> None:
        self._group = group
        self._handle = handle
        self._waiting: dict[Hashable, deque[T]] = {}
        """The items that wait for an earlier item of their user."""

    def add(self, user: Hashable, item: T) -> None:
        """Handle an item after the earlier ones of the user."""
        if user in self._waiting:
            self._waiting[user].append(item)
        else:
            self._waiting[user] = deque([item])
            self._group.create_task(self._handle_all(user))

    async def _handle_all(self, user: Hashable) -> None:
        waiting = self._waiting[user]
        while waiting:
            await self._handle(waiting.popleft())
        del self._waiting[user]
