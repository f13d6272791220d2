"""Requests that may take long: those that wait for something, and uploads. Their number is limited."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from litestar.types import Receive

from emulator.core.extensions import Extensions
from emulator.http.endpoint import Call
from emulator.http.refusals import ended_early, left_early, too_many_uploads, too_many_waits
from emulator.http.response import Reply, close_chunks

MAX_WAITS = 1_000


class HeldRequests:
    """The requests of one service that wait for an event. Their number is limited."""

    def __init__(self) -> None:
        self._held: set[asyncio.Future[Any]] = set()
        """The tasks of waiting requests. For one whose response is already streaming, a future that ends it."""

    def __len__(self) -> int:
        return len(self._held)

    async def answer(self, answering: Callable[[], Coroutine[Any, Any, Reply]], receive: Receive) -> Reply:
        """Run `answering`; cancel it if the client leaves, or at `end_all`.

        Raises `TooManyRequests` beyond the limit, `BadRequest` if the client leaves, and `WaitEnded`.
        """
        if len(self) >= MAX_WAITS:
            raise too_many_waits(limit=MAX_WAITS)
        task = asyncio.create_task(answering())
        leaving = asyncio.create_task(wait_for_leaving(receive))
        self._held.add(task)
        try:
            await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not task.cancelled():
                return task.result()
            raise left_early() if leaving.done() else ended_early()
        finally:
            self._held.discard(task)
            for each in (task, leaving):
                each.cancel()
            await asyncio.gather(task, leaving, return_exceptions=True)

    async def stream(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks of a waiting request's response until `end_all`."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held.add(ended)
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
            self._held.discard(ended)
            await close_chunks(chunks)

    def end_all(self) -> None:
        """End all waiting requests: with 503, or, if the response is already streaming, by ending it there."""
        for each in self._held:
            each.cancel()


async def wait_for_leaving(receive: Receive) -> None:
    """Wait until the client or the service has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Uploads:
    """The uploads of a process. Each takes a few MiB of memory, and space for temporary files, until its response."""

    def __init__(self, limit: int, extensions: Extensions | None = None) -> None:
        """In production, `extensions` share the uploads: one of several leaves half of them to the others."""
        self._limit = limit
        self._extensions = extensions
        self._running: Counter[str] = Counter()
        """By client id; empty for calls without one."""

    def __len__(self) -> int:
        """Return the number of uploads that run."""
        return self._running.total()

    async def run_upload(self, handler: Callable[[Call], Awaitable[object]], call: Call) -> object:
        """Run a handler, which counts as an upload meanwhile. Raises `Unavailable` beyond the limit."""
        client_id = call.caller.client_id if call.has_caller else call.client_id
        if len(self) >= self._limit:
            raise too_many_uploads(limit=self._limit)
        share = (self._limit + 1) // 2
        is_shared = self._extensions is not None and len(self._extensions.current) > 1
        if is_shared and self._running[client_id] >= share:
            raise too_many_uploads(limit=share, is_share=True)
        self._running[client_id] += 1
        try:
            return await handler(call)
        finally:
            self._running[client_id] -= 1
            self._running += Counter()  # forgets who has no upload
