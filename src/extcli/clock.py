"""The only module of the command line that reads the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

LONGEST_WAIT = 0.2 if sys.platform == "win32" else None
"""Seconds that one wait may take; `None` means no limit. Windows notices Ctrl-C only between two waits."""


def now() -> int:
    """This machine's time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def elapsed() -> float:
    """Seconds from an arbitrary point. Only differences are meaningful."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Sleep for this many seconds."""
    time.sleep(seconds)


def split_wait(seconds: float | None, longest: float | None = LONGEST_WAIT) -> Iterator[float | None]:
    """Divide a wait into parts of at most `longest` seconds. `None` means an endless wait."""
    if longest is None:
        yield seconds
        return
    end = None if seconds is None else elapsed() + seconds
    yield longest if seconds is None else min(seconds, longest)
    while end is None or elapsed() < end:
        yield longest if end is None else min(end - elapsed(), longest)
