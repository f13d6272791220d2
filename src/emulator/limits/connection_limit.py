"""How many connections each client id has, and that it is not too many."""

from __future__ import annotations

from typing import Final

from emulator.errors import TooManyRequests

_LATER: Final = 10
"""Seconds after which somebody may have left; nobody knows when."""


class ConnectionLimit:
    """Counts connections by client id; those that have named none yet share one count."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: dict[str, int] = {}

    def take(self, client_id: str) -> None:
        """One more; raises `TooManyRequests` when all are taken."""
        taken = self._taken.get(client_id, 0)
        if taken >= self._most:
            whose = f"the client id {client_id[:100]} has" if client_id else "there are, without a client id,"
            detail = f"{whose} {taken} connections, and at most {self._most} are taken"
            raise TooManyRequests("Too many connections", detail, retry_after=_LATER)
        self._taken[client_id] = taken + 1

    def leave(self, client_id: str) -> None:
        """One less."""
        taken = self._taken[client_id] - 1
        if taken:
            self._taken[client_id] = taken
        else:
            del self._taken[client_id]
