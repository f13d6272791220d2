"""A failure that requests run into is said once a second, however many they are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from emulator.clock import monotonic

_EVERY = 1.0
"""Seconds in which a complaint is not repeated."""
_MOST = 1_000
"""Complaints that are remembered. Ours are a few; a library may make up a new one each time."""


class OncePerSecond(logging.Filter):
    """Lets warnings and errors pass once a second: those of one logger, one template and one kind of exception.

    What is about no request comes from no crowd; there, it is the whole message that is not said again. The next that
    passes has in `left_out` how many were kept back since.
    """

    def __init__(self, read: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._read = read
        self._lock = threading.Lock()
        self._said: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this one is to be said."""
        if record.levelno < logging.WARNING:
            return True
        kind = record.exc_info[0] if record.exc_info else None
        text = str(record.msg) if getattr(record, "request_id", "") else record.getMessage()
        complaint = (record.name, text, kind)
        with self._lock:
            now = self._read()
            at, left_out = self._said.get(complaint, (now - _EVERY, 0))
            if now - at < _EVERY:
                self._said[complaint] = (at, left_out + 1)
                return False
            if len(self._said) >= _MOST:
                self._said.clear()
            self._said[complaint] = (now, 0)
        if left_out:
            record.left_out = left_out
        return True
