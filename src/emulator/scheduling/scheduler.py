"""Runs a callback at an instant of the service's clock, even if the clock is moved or frozen in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from emulator.clock import Clock
from emulator.errors import EngineError

Callback = Callable[[], Awaitable[None]]

_MAX_WAIT = 60.0
"""Seconds after which a timer rereads the clock, however far its instant is."""
_log = logging.getLogger("emulator")


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

    def __len__(self) -> int:
        return len(self._timers)

    def schedule(self, key: Hashable, at: int, callback: Callback) -> None:
        """Run `callback` at `at` (ms), in place of any earlier callback of `key`. A past instant runs at once."""
        self.cancel(key)
        self._timers[key] = timer = _Timer(at, callback)
        self._arm(key, timer)

    def cancel(self, key: Hashable) -> None:
        """Cancel the callback; a running one finishes."""
        timer = self._timers.pop(key, None)
        if timer and timer.handle:
            timer.handle.cancel()

    async def clock_moved(self) -> None:
        """Run what has become due, earliest first; return when it is done."""
        now = self._clock.now()
        due = [(key, timer) for key, timer in self._timers.items() if timer.at <= now]
        for key, timer in sorted(due, key=lambda item: item[1].at):
            if self._timers.get(key) is timer:
                self.cancel(key)
                await self._run(timer)
        for key, timer in self._timers.items():
            self._arm(key, timer)
        await self._finish()  # callbacks that the event loop started just before

    def clear(self) -> None:
        for key in list(self._timers):
            self.cancel(key)

    async def close(self) -> None:
        self.clear()
        await self._finish()

    async def _finish(self) -> None:
        await asyncio.gather(*self._running)

    def _arm(self, key: Hashable, timer: _Timer) -> None:
        if timer.handle:
            timer.handle.cancel()
        timer.handle = None
        wait = max(0, timer.at - self._clock.now()) / 1000
        if not wait or not self._clock.frozen:
            wait = min(wait, _MAX_WAIT)
            timer.handle = asyncio.get_running_loop().call_later(wait, self._check, key, timer)

    def _check(self, key: Hashable, timer: _Timer) -> None:
        if self._clock.now() < timer.at:
            self._arm(key, timer)
            return
        self.cancel(key)
        task = asyncio.get_running_loop().create_task(self._run(timer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, timer: _Timer) -> None:
        try:
            await timer.callback()
        except EngineError as error:
            _log.warning("a scheduled update failed: %s", error)
        except Exception:
            _log.exception("unexpected failure in a scheduled update")
