"""The only module of the command line that reads the time."""

from __future__ import annotations

import time


def now() -> int:
    """This machine's time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def elapsed() -> float:
    """Seconds from an arbitrary point. Only differences are meaningful."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)
