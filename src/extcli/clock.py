"""The one place of the command line that reads or spends real time."""

from __future__ import annotations

import time


def now() -> int:
    """This machine's time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def elapsed() -> float:
    """Seconds from some fixed point; only differences mean anything."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)
