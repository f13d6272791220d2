"""Having something done at an instant of the service's time, wherever the clock is moved to meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from emulator.clock import Clock
from emulator.errors import EngineError

Act = Callable[[], Awaitable[None]]

_LONGEST = 60.0
"""Seconds after which a timer looks at the clock again, however far the instant is."""
_log = logging.getLogger("emulator")


@dataclass
class _Timer:
    at: int
    act: Act
    timer: asyncio.TimerHandle | None = None


class Scheduler:
    """One alarm per key. While the clock runs, the loop's timers ring them; a moved clock rings what it passes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduler: dict[Hashable, _Timer] = {}
        self._ringing: set[asyncio.Task[None]] = set()

    def set(self, key: Hashable, at: int, act: Act) -> None:
        """Have `act` done once it is `at` (ms), in place of what was set under `key` before."""
        self.cancel(key)
        self._scheduler[key] = alarm = _Timer(at, act)
        self._wind(key, alarm)

    def cancel(self, key: Hashable) -> None:
        """Have it done no more; what is being done goes on."""
        alarm = self._scheduler.pop(key, None)
        if alarm and alarm.timer:
            alarm.timer.cancel()

    async def clock_moved(self) -> None:
        """Ring what the clock has passed, earliest first, and return when that is done."""
        now = self._clock.now()
        due = [(key, alarm) for key, alarm in self._scheduler.items() if alarm.at <= now]
        for key, alarm in sorted(due, key=lambda one: one[1].at):
            if self._scheduler.get(key) is alarm:
                self.cancel(key)
                await self._ring(alarm)
        for key, alarm in self._scheduler.items():
            self._wind(key, alarm)
        await self._settled()  # what a timer rang just before

    def forget(self) -> None:
        """Ring none of them."""
        for key in list(self._scheduler):
            self.cancel(key)

    async def close(self) -> None:
        """Ring none of them, and wait for those that are ringing."""
        self.forget()
        await self._settled()

    async def _settled(self) -> None:
        await asyncio.gather(*self._ringing)

    def _wind(self, key: Hashable, alarm: _Timer) -> None:
        if alarm.timer:
            alarm.timer.cancel()
        alarm.timer = None
        wait = max(0, alarm.at - self._clock.now()) / 1000
        if not wait or not self._clock.frozen:
            wait = min(wait, _LONGEST)
            alarm.timer = asyncio.get_running_loop().call_later(wait, self._look, key, alarm)

    def _look(self, key: Hashable, alarm: _Timer) -> None:
        if self._clock.now() < alarm.at:
            self._wind(key, alarm)
            return
        self.cancel(key)
        task = asyncio.get_running_loop().create_task(self._ring(alarm))
        self._ringing.add(task)
        task.add_done_callback(self._ringing.discard)

    async def _ring(self, alarm: _Timer) -> None:
        try:
            await alarm.act()
        except EngineError as error:
            _log.warning("what was due could not be done: %s", error)
        except Exception:
            _log.exception("unexpected failure in what was due")
