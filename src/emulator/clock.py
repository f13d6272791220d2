"""The one place that reads the time. Everything else is told what time it is, in integer Unix milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

END_OF_TIME = 253_402_300_800_000
"""The first instant of the year 10000; no clock is moved to it or beyond."""


def system_now() -> int:
    """The machine's time."""
    return time.time_ns() // 1_000_000


monotonic = time.perf_counter
"""Seconds on a clock that nobody sets, of which only distances mean anything: how long something took."""


def clamp_instant(instant: int) -> int:
    """The instant that a clock can show which is nearest to this one."""
    return max(0, min(instant, END_OF_TIME - 1))


class Clock:
    """The time of one running service. It ticks with the machine, at a distance that can be moved, or stands still.

    Every lifetime and timestamp of the service is read from it, token expiry included (`operations.md`, Controlling).
    """

    def __init__(self, read: Callable[[], int] = system_now) -> None:
        self._read = read
        self._offset = 0
        self._stands_at: int | None = None
        self._frozen = False

    def now(self) -> int:
        """The service's time."""
        return self._stands_at if self._stands_at is not None else self._read() + self._offset

    @property
    def offset(self) -> int:
        """How far the service's time is ahead of the machine's; changes by itself while frozen."""
        return self._offset if self._stands_at is None else self._stands_at - self._read()

    @property
    def frozen(self) -> bool:
        """Whether the time stands still."""
        return self._frozen

    def set(self, instant: int) -> None:
        """Make it `instant` now. A frozen clock stays frozen, there."""
        self._offset = instant - self._read()
        if self._stands_at is not None:
            self._stands_at = instant

    def advance(self, ms: int) -> None:
        """Make it `ms` later."""
        self._offset += ms
        if self._stands_at is not None:
            self._stands_at += ms

    def freeze(self, frozen: bool) -> None:
        """Stop the time where it is, or let it run on from where it stands."""
        if self._stands_at is not None:
            self._offset = self._stands_at - self._read()
        self._stands_at = self.now() if frozen else None
        self._frozen = frozen

    @contextmanager
    def paused(self) -> Iterator[int]:
        """Let nobody see time pass in the block; afterwards a clock that ran has caught up."""
        paused_at = self.now()
        if not self._frozen:
            self._stands_at = paused_at
        try:
            yield paused_at
        finally:
            if not self._frozen:
                self._stands_at = None

    def reset(self) -> None:
        """The machine's time again, running."""
        self._offset = 0
        self._stands_at = None
        self._frozen = False
