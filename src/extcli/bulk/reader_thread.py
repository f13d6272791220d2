"""Brings what a blocking iterator yields into an event loop, from a thread that never keeps the program alive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class ReaderThread(Generic[T]):
    """Asks the iterator for one item at a time, ahead of its use.

    asyncio's own threads would be waited for at the end, and this one may be waiting for somebody to type.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._wanted: SimpleQueue[asyncio.Future[T | None] | None] = SimpleQueue()
        Thread(target=self._run, name="input", daemon=True).start()

    def ask(self) -> asyncio.Future[T | None]:
        """The next item, or `None` after the last."""
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._wanted.put(future)
        return future

    def close(self) -> None:
        """Let the thread end when it comes back from what it is waiting for."""
        self._wanted.put(None)

    def _run(self) -> None:
        while (future := self._wanted.get()) is not None:
            try:
                item, error = next(self._items, None), None
            except Exception as raised:
                item, error = None, raised
            try:
                future.get_loop().call_soon_threadsafe(_settle, future, item, error)
            except RuntimeError:  # the loop has ended meanwhile
                return


def _settle(future: asyncio.Future[T | None], item: T | None, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(item)
