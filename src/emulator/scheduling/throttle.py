"""Runs a callback per key at most once per interval, the first time at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from emulator.errors import EngineError

K = TypeVar("K")
_log = logging.getLogger("emulator")


class Throttle(Generic[K]):
    """Runs `callback` per key at most once per `interval` seconds; triggers in between lead to one more run."""

    def __init__(self, callback: Callable[[K], Awaitable[None]], interval: float) -> None:
        self._callback = callback
        self._interval = interval
        self._waiting: dict[K, asyncio.TimerHandle] = {}
        self._pending: set[K] = set()
        self._running: dict[K, asyncio.Task[None]] = {}
        self._closed = False

    def trigger(self, key: K) -> None:
        """Run the callback now, or once the interval is over."""
        if self._closed:
            return
        if key in self._waiting or key in self._running:
            self._pending.add(key)
            return
        loop = asyncio.get_running_loop()
        self._waiting[key] = loop.call_later(self._interval, self._interval_over, key)
        self._running[key] = task = loop.create_task(self._run(key))
        task.add_done_callback(lambda _: self._finished(key))

    async def flush(self) -> None:
        """End all intervals; return when the pending callbacks have run."""
        for key in list(self._waiting):
            self._waiting[key].cancel()
            self._interval_over(key)
        await self._wait_for_running()

    def clear(self) -> None:
        for handle in self._waiting.values():
            handle.cancel()
        self._waiting.clear()
        self._pending.clear()

    async def close(self) -> None:
        """Ignore triggers from now on, and wait for running callbacks."""
        self._closed = True
        self.clear()
        await self._wait_for_running()
        del self._callback  # it may be a method of the owner of this

    async def _wait_for_running(self) -> None:
        while self._running:  # the end of one may start a pending one
            await asyncio.gather(*self._running.values())

    def _interval_over(self, key: K) -> None:
        del self._waiting[key]
        self._run_if_pending(key)

    def _finished(self, key: K) -> None:
        del self._running[key]
        self._run_if_pending(key)

    def _run_if_pending(self, key: K) -> None:
        if key in self._pending and key not in self._waiting and key not in self._running:
            self._pending.discard(key)
            self.trigger(key)

    async def _run(self, key: K) -> None:
        try:
            await self._callback(key)
        except EngineError as error:
            _log.warning("notifying subscribers failed: %s", error)
        except Exception:
            _log.exception("unexpected failure while notifying subscribers")
