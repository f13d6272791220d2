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
            detail = f"{are_open(count, f'connections {owner}')}, limit {self._limit}"
            raise TooManyRequests(TOO_MANY, detail, retry_after=RETRY_AFTER)
        self._open[client_id] = count + 1

    def release(self, client_id: str) -> None:
        count = self._open[client_id] - 1
        if count:
            self._open[client_id] = count
        else:
            del self._open[client_id]


def are_open(count: int, what: str) -> str:
    """Return `2 connections of pages are open`, or `1 connection of pages is open`."""
    return f"{count} {what} are open" if count != 1 else f"1 {what.replace('connections', 'connection', 1)} is open"
