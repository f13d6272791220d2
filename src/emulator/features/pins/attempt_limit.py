"""Limits how many wrong PINs a client id may try (ruling T4)."""

from __future__ import annotations

from emulator.clock import MINUTE, Clock
from emulator.errors import TooManyRequests


class AttemptLimit:
    """Counts the failed attempts of each client id in the last minute. `limit` is `None` for no limit."""

    def __init__(self, clock: Clock, limit: int | None) -> None:
        self._clock = clock
        self._limit = limit
        self._failures: dict[str, list[int]] = {}

    def check(self, client_id: str) -> None:
        """Raise `TooManyRequests` if the client id has reached the limit."""
        recent = self._recent(client_id)
        if self._limit is not None and len(recent) >= self._limit:
            wait = (recent[0] + MINUTE - self._clock.now() + 999) // 1000
            raise TooManyRequests(
                "Too many attempts",
                f"{self._limit} wrong PINs for this client id within a minute; retry in {wait} s",
                retry_after=wait,
            )

    def record_failure(self, client_id: str) -> None:
        if self._limit is not None:
            self._failures[client_id] = [*self._recent(client_id), self._clock.now()]

    def _recent(self, client_id: str) -> list[int]:
        now = self._clock.now()
        return [at for at in self._failures.get(client_id, ()) if now - MINUTE < at <= now]
