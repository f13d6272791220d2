"""Runs a blocking iterator in a thread, for an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class ReaderThread(Generic[T]):
    """Fetches one item at a time.

    The thread is a daemon, since it may be blocked on a terminal; asyncio would wait for its own threads at exit.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._requests: SimpleQueue[asyncio.Future[T | None] | None] = SimpleQueue()
        Thread(target=self._run, name="input", daemon=True).start()

    def next_item(self) -> asyncio.Future[T | None]:
        """Fetch the next item, or `None` after the last."""
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._requests.put(future)
        return future

    def close(self) -> None:
        """End the thread after the item it is fetching."""
        self._requests.put(None)

    def _run(self) -> None:
        while (future := self._requests.get()) is not None:
            try:
                item, error = next(self._items, None), None
            except Exception as raised:
                item, error = None, raised
            try:
                future.get_loop().call_soon_threadsafe(_settle, future, item, error)
            except RuntimeError:  # the loop has ended
                return


def _settle(future: asyncio.Future[T | None], item: T | None, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(item)
