"""The service's clock, and the only module that reads the time. Instants are integer Unix milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, perf_counter_ns, thread_time, time_ns

from msgspec import Struct

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

END_OF_TIME = 253_402_300_800_000
"""The start of the year 10000; clocks stay before it."""


def system_now() -> int:
    return time_ns() // 1_000_000


monotonic = perf_counter
"""Seconds on a clock that is never set, for durations."""
processor_time = thread_time
"""Seconds of processor time that this thread has used. Other processes on a loaded machine do not add to it."""


def duration_text(seconds: int) -> str:
    """Return a duration in whole seconds as text, in the largest unit that fits: `12 min`."""
    for name, size in (("day", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            plural = "s" if name == "day" and seconds >= 2 * size else ""
            return f"{seconds // size} {name}{plural}"
    return f"{max(seconds, 0)} s"


def clamp_instant(instant: int) -> int:
    """Limit an instant to the range that a clock can show."""
    return max(0, min(instant, END_OF_TIME - 1))


class ClockState(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The state of a clock, as snapshots have it: the offset of a running clock, or the instant of a frozen one."""

    offset: int = 0
    """In ms, ahead of the system time; ignored if frozen."""
    frozen_at: int | None = None
    """In Unix ms."""


class Clock:
    """The time of one service: the system time plus an offset, or frozen.

    All of the service's lifetimes and timestamps use it, including token expiry. Rates use its `ticks`.
    """

    def __init__(self, read: Callable[[], int] = system_now, ticks: Callable[[], int] = perf_counter_ns) -> None:
        self.ticks = ticks
        """Reads the nanoseconds of a clock that nothing sets or freezes, for rates: they limit load."""
        self._read = read
        self._is_system = read is system_now
        self._offset = 0
        self._paused_at: int | None = None
        self.frozen = False
        """Whether it stands still."""

    def now(self) -> int:
        """The service's time."""
        if self._paused_at is not None:
            return self._paused_at
        # Without the call of `system_now`: a vote reads the time six times.
        return (time_ns() // 1_000_000 if self._is_system else self._read()) + self._offset

    @property
    def offset(self) -> int:
        """Milliseconds ahead of the system time; while frozen, it shrinks as time passes."""
        return self._offset if self._paused_at is None else self._paused_at - self._read()

    def disagrees_about(self, instant: int) -> bool:
        """Whether an instant is in the past by this clock and in the future by the system's, or the reverse."""
        return (instant <= self.now()) != (instant <= self.now() - self.offset)

    @property
    def lead_in_words(self) -> str:
        """How far this clock is ahead of or behind the system's, in words."""
        return f"{duration_text(abs(self.offset) // 1000)} {'ahead of' if self.offset > 0 else 'behind'} the system's"

    def set(self, instant: int | None) -> None:
        """Set the time to `instant`; with `None`, to the system's. A frozen clock stays frozen."""
        now = self._read()
        self._offset = 0 if instant is None else instant - now
        if self._paused_at is not None:
            self._paused_at = now + self._offset

    def advance(self, ms: int) -> None:
        self._offset += ms
        if self._paused_at is not None:
            self._paused_at += ms

    def freeze(self, frozen: bool) -> None:
        """Freeze the clock at its present time, or let it run on from there."""
        if self._paused_at is not None:
            self._offset = self._paused_at - self._read()
        self._paused_at = self.now() if frozen else None
        self.frozen = frozen

    @contextmanager
    def hold_still(self) -> Iterator[int]:
        """Hold the time constant in the block; a running clock then catches up."""
        paused_at = self.now()
        if not self.frozen:
            self._paused_at = paused_at
        try:
            yield paused_at
        finally:
            if not self.frozen:
                self._paused_at = None

    @property
    def state(self) -> ClockState:
        """The present state, for `restore`."""
        return ClockState(frozen_at=self.now()) if self.frozen else ClockState(self._offset)

    def restore(self, state: ClockState) -> None:
        """Freeze or run as in this state."""
        self._offset, self._paused_at = state.offset, state.frozen_at
        self.frozen = state.frozen_at is not None
