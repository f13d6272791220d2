"""Log deduplication: a failure that many requests hit is logged once a second."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from emulator.clock import monotonic

_INTERVAL = 1.0
"""Seconds in which a record is not repeated."""
_MAX_KEYS = 1_000
"""Distinct records remembered. The service has few, but a library may word each one differently."""


class OncePerSecond(logging.Filter):
    """Passes warnings and errors once a second per logger, message template and exception type.

    Records outside a request are compared by their whole message. The next record that passes carries the number of
    dropped ones in `left_out`.
    """

    def __init__(self, read: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._read = read
        self._lock = threading.Lock()
        self._passed: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = record.exc_info[0] if record.exc_info else None
        text = str(record.msg) if getattr(record, "request_id", "") else record.getMessage()
        key = (record.name, text, kind)
        with self._lock:
            now = self._read()
            at, left_out = self._passed.get(key, (now - _INTERVAL, 0))
            if now - at < _INTERVAL:
                self._passed[key] = (at, left_out + 1)
                return False
            if len(self._passed) >= _MAX_KEYS:
                self._passed.clear()
            self._passed[key] = (now, 0)
        if left_out:
            record.left_out = left_out
        return True
