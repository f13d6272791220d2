"""Requests that wait for something: limited in number, and ended when their client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

from litestar.types import Receive

from emulator.http.refusals import ended_early, left_early, too_many_waits
from emulator.http.response import Reply, close_chunks

MAX_HELD: Final = 1_000


class HeldRequests:
    """The held requests of one service."""

    def __init__(self, limit: int = MAX_HELD) -> None:
        self._limit = limit
        self._running: set[asyncio.Task[Reply]] = set()
        self._streams: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._running) + len(self._streams)

    async def answer(self, answering: Callable[[], Coroutine[Any, Any, Reply]], receive: Receive) -> Reply:
        """Run `answering`; cancel it if the client leaves, or at `end`.

        Raises `TooManyRequests` beyond the limit, `BadRequest` if the client leaves, and `Ended`.
        """
        if len(self) >= self._limit:
            raise too_many_waits(limit=self._limit)
        task = asyncio.create_task(answering())
        leaving = asyncio.create_task(client_left(receive))
        self._running.add(task)
        try:
            await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not task.cancelled():
                return task.result()
            raise left_early() if leaving.done() else ended_early()
        finally:
            self._running.discard(task)
            for each in (task, leaving):
                each.cancel()
            await asyncio.gather(task, leaving, return_exceptions=True)

    async def stream(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks of a held request until `end`."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams.add(ended)
        try:
            while True:
                step = asyncio.ensure_future(anext(chunks))
                try:
                    await asyncio.wait((step, ended), return_when=asyncio.FIRST_COMPLETED)
                    if ended.done():
                        return
                    yield step.result()
                except StopAsyncIteration:
                    return
                finally:
                    step.cancel()
                    await asyncio.gather(step, return_exceptions=True)
        finally:
            self._streams.discard(ended)
            await close_chunks(chunks)

    def end(self) -> None:
        """End all held requests: with 503, or, if the response is streamed, where it is."""
        for task in self._running:
            task.cancel()
        for stream in self._streams:
            if not stream.done():
                stream.set_result(None)


async def client_left(receive: Receive) -> None:
    """Return when the client has closed the connection, or the service has."""
    while (await receive())["type"] != "http.disconnect":
        pass
