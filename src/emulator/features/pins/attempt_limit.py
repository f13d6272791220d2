"""How many wrong PINs a client id may try (ruling T4)."""

from __future__ import annotations

from emulator.clock import MINUTE, Clock
from emulator.errors import TooManyRequests


class AttemptLimit:
    """Counts failures per client id, for a minute each."""

    def __init__(self, clock: Clock, most: int | None) -> None:
        self._clock = clock
        self._most = most
        """`None` for no limit."""
        self._failures: dict[str, list[int]] = {}

    def check(self, client_id: str) -> None:
        """Raise `TooManyRequests` when there were too many failures in the last minute."""
        recent = self._recent(client_id)
        if self._most is not None and len(recent) >= self._most:
            wait = (recent[0] + MINUTE - self._clock.now() + 999) // 1000
            raise TooManyRequests(
                "Too many attempts",
                f"{self._most} wrong PINs for this client id in a minute; wait {wait} s",
                retry_after=wait,
            )

    def failed(self, client_id: str) -> None:
        """One more failure."""
        if self._most is None:
            return
        recent = self._recent(client_id)
        self._failures[client_id] = [*recent, self._clock.now()]

    def _recent(self, client_id: str) -> list[int]:
        now = self._clock.now()
        return [at for at in self._failures.get(client_id, ()) if now - MINUTE < at <= now]
