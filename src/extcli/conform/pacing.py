"""Keeps requests below the rate limits of a production service."""

from __future__ import annotations

from extcli import clock

PER_SECOND = 50.0
"""Requests per second of one caller. `extcli serve` allows 100 to a viewer in production."""
BURST = 50.0


class Pace:
    """Delays requests so that no caller makes more than `PER_SECOND`."""

    def __init__(self, *, unlimited: bool, shared: bool) -> None:
        """With `shared`, all callers together keep the limit."""
        self._unlimited = unlimited
        self._shared = shared
        self._spent: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """Wait until this caller may make a request."""
        if self._unlimited:
            return
        key = "" if self._shared else caller
        now = clock.elapsed()
        spent, at = self._spent.get(key, (0.0, now))
        spent = max(0.0, spent - (now - at) * PER_SECOND) + 1
        self._spent[key] = spent, now
        if spent > BURST:
            clock.sleep((spent - BURST) / PER_SECOND)
