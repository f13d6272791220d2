"""Limits the connections of each client id."""

from __future__ import annotations

from typing import Final

from emulator.errors import TooManyRequests

TOO_MANY: Final = "Too many connections"
RETRY_AFTER: Final = 10
"""Seconds, a guess: a connection may close at any time."""


class ConnectionLimit:
    """Counts connections per client id; those without one share a count."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[str, int] = {}

    def acquire(self, client_id: str) -> None:
        """Count one connection; raises `TooManyRequests` at the limit."""
        count = self._open.get(client_id, 0)
        if count >= self._limit:
            owner = f"with client id {client_id[:100]}" if client_id else "without a client id"
            detail = f"open connections {owner}: {count}, limit {self._limit}"
            raise TooManyRequests(TOO_MANY, detail, retry_after=RETRY_AFTER)
        self._open[client_id] = count + 1

    def release(self, client_id: str) -> None:
        count = self._open[client_id] - 1
        if count:
            self._open[client_id] = count
        else:
            del self._open[client_id]
