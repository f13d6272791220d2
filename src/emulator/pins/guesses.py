"""How many wrong PINs a client id may try (ruling T4)."""

from __future__ import annotations

from emulator.clock import MINUTE, Clock
from emulator.errors import TooManyRequests

_MOST_CLIENTS = 10_000


class Guesses:
    """Counts attempts per client id and minute. An attempt is taken for a failure until it has succeeded."""

    def __init__(self, clock: Clock, most: int | None) -> None:
        self._clock = clock
        self._most = most
        """`None` for no limit."""
        self._attempts: dict[str, list[int]] = {}

    def attempt(self, client_id: str) -> None:
        """Count one; raises `TooManyRequests` when there were too many failures in the last minute."""
        if self._most is None:
            return
        now = self._clock.now()
        recent = [at for at in self._attempts.pop(client_id, ()) if now - MINUTE < at <= now]
        self._attempts[client_id] = recent  # at the end: the first is the one that was quiet for longest
        if len(recent) >= self._most:
            wait = (recent[0] + MINUTE - now + 999) // 1000
            raise TooManyRequests(
                "Too many attempts", f"over {self._most} wrong PINs for this client id in a minute; wait {wait} s"
            )
        recent.append(now)
        if len(self._attempts) > _MOST_CLIENTS:
            del self._attempts[next(iter(self._attempts))]

    def succeeded(self, client_id: str) -> None:
        """The last attempt was right."""
        if recent := self._attempts.get(client_id):
            recent.pop()
