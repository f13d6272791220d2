"""Runs callbacks at an instant of the service's clock, or at most once per interval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from emulator.core.clock import Clock
from emulator.core.errors import EngineError

Callback = Callable[[], Awaitable[None]]

_MAX_WAIT = 60.0
"""Seconds after which a timer rereads the clock, however far its instant is."""
_log = logging.getLogger("emulator")

K = TypeVar("K")


@dataclass
class _Timer:
    at: int
    callback: Callback
    handle: asyncio.TimerHandle | None = None


class Scheduler:
    """Holds one timer per key. The event loop runs it when due; moving the clock past it runs it too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[Hashable, _Timer] = {}
        self._running: set[asyncio.Task[None]] = set()

    def schedule(self, key: Hashable, at: int, callback: Callback) -> None:
        """Run `callback` at `at` (ms), in place of any earlier callback of `key`. A past instant runs at once."""
        self.cancel(key)
        self._timers[key] = timer = _Timer(at, callback)
        self._start_timer(key, timer)

    def cancel(self, key: Hashable) -> None:
        """Cancel the callback of `key`. A running callback finishes."""
        timer = self._timers.pop(key, None)
        if timer and timer.handle:
            timer.handle.cancel()

    async def clock_moved(self) -> None:
        """Run all callbacks that are due, earliest first; return when they are done."""
        now = self._clock.now()
        due = [(key, timer) for key, timer in self._timers.items() if timer.at <= now]
        for key, timer in sorted(due, key=lambda item: item[1].at):
            if self._timers.get(key) is timer:
                self.cancel(key)
                await self._run_callback(timer)
        for key, timer in self._timers.items():
            self._start_timer(key, timer)
        await asyncio.gather(*self._running)  # callbacks that the event loop started just before

    def clear(self) -> None:
        for key in list(self._timers):
            self.cancel(key)

    async def close(self) -> None:
        self.clear()
        await asyncio.gather(*self._running)

    def _start_timer(self, key: Hashable, timer: _Timer) -> None:
        if timer.handle:
            timer.handle.cancel()
        timer.handle = None
        wait = max(0, timer.at - self._clock.now()) / 1000
        if not wait or not self._clock.frozen:
            wait = min(wait, _MAX_WAIT)
            timer.handle = asyncio.get_running_loop().call_later(wait, self._run_if_due, key, timer)

    def _run_if_due(self, key: Hashable, timer: _Timer) -> None:
        if self._clock.now() < timer.at:
            self._start_timer(key, timer)
            return
        self.cancel(key)
        task = asyncio.get_running_loop().create_task(self._run_callback(timer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run_callback(self, timer: _Timer) -> None:
        await _log_failure(
            timer.callback(), "a scheduled update failed: %s", "unexpected failure in a scheduled update"
        )


async def _log_failure(running: Awaitable[None], failed: str, broken: str) -> None:
    """Wait for a callback. A failure of storage, or any other, is only logged, in these words."""
    try:
        await running
    except EngineError as error:
        _log.warning(failed, error)
    except Exception:
        _log.exception(broken)


class Throttle(Generic[K]):
    """Runs `callback` per key at most once per `interval` seconds; triggers in between cause one more run."""

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
        self._waiting[key] = loop.call_later(self._interval, self._end_and_rerun, self._waiting, key)
        self._running[key] = task = loop.create_task(self._run_callback(key))
        task.add_done_callback(lambda _: self._end_and_rerun(self._running, key))

    async def flush(self) -> None:
        """End all intervals; return when the pending callbacks have run."""
        for key in list(self._waiting):
            self._waiting[key].cancel()
            self._end_and_rerun(self._waiting, key)
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

    def _end_and_rerun(self, going: dict[K, Any], key: K) -> None:
        """End the interval or the run of a key; run again if that is pending."""
        del going[key]
        if key in self._pending and key not in self._waiting and key not in self._running:
            self._pending.discard(key)
            self.trigger(key)

    async def _run_callback(self, key: K) -> None:
        await _log_failure(
            self._callback(key), "notifying subscribers failed: %s", "unexpected failure while notifying subscribers"
        )
