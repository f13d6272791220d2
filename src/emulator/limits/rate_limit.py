"""How often a caller and a client id may ask: so many a second, on an average over a few seconds."""

from __future__ import annotations

import math

from emulator.callers import EXTENSION_WRITERS, Caller
from emulator.clock import SECOND, Clock
from emulator.errors import TooManyRequests

WINDOW = 5 * SECOND
"""Ms over which the average is taken: whoever was quiet for so long may ask for as much at once."""
SERVERS = 10
"""How many times as much as a viewer the extension's own servers may ask, who speak for many, and an address whose
callers are not known, or fail to prove who they are."""
_SWEPT = 10_000
_MICROSECONDS = 1_000
"""In a ms. Whole numbers of them add up exactly; fractions of a ms would not."""


class RateLimit:
    """So many requests a second for each key, by the generic cell rate algorithm: one number per key, no queue."""

    def __init__(self, per_second: int) -> None:
        self._apart = SECOND * _MICROSECONDS // per_second
        self._due: dict[tuple[str, str], int] = {}
        """When all its requests would have been served, one after the other at the rate, in Unix µs."""
        self._sweep_at = _SWEPT

    def wait(self, key: tuple[str, str], now: int, *, count: bool = True) -> int:
        """Count one request, or only look; 0 if it may go on, else the ms until one may, and it is not counted."""
        at = now * _MICROSECONDS
        due, latest = self._due.get(key, 0), at + WINDOW * _MICROSECONDS
        if due < at or due > latest:  # later only if the clock was set back, which is nobody's fault
            due = at
        due += self._apart
        if due > latest:
            return -((latest - due) // _MICROSECONDS)
        if not count:
            return 0
        self._due[key] = due
        if len(self._due) >= self._sweep_at:
            self._sweep(at)
        return 0

    def __len__(self) -> int:
        """How many keys take room."""
        return len(self._due)

    def forget(self) -> None:
        """Hold nothing against anyone."""
        self._due.clear()

    def _sweep(self, at: int) -> None:
        self._due = {key: due for key, due in self._due.items() if due > at}
        self._sweep_at = max(_SWEPT, 2 * len(self._due))


class RateLimits:
    """Who asks too often is refused with 429 until there is room; 0 for no limit.

    Each process counts what it serves itself.
    """

    def __init__(self, clock: Clock, *, per_caller: int, per_client: int) -> None:
        self._clock = clock
        self._callers = RateLimit(per_caller) if per_caller else None
        self._servers = RateLimit(per_caller * SERVERS) if per_caller else None
        self._clients = RateLimit(per_client) if per_client else None

    def forget(self) -> None:
        """Begin anew."""
        for each in (self._callers, self._servers, self._clients):
            if each is not None:
                each.forget()

    def check(self, caller: Caller) -> None:
        """Count a request of a caller and of its extension; raises `TooManyRequests` when it is one too many."""
        rate = self._servers if caller.role in EXTENSION_WRITERS else self._callers
        self._count(rate, (caller.client_id, caller.identity), caller.client_id, "this caller")

    def check_address(self, client_id: str, address: str) -> None:
        """Count a request of someone unknown at a network address, who may name a client id."""
        self._count(self._servers, (client_id, f"@{address}"), client_id, "this address")

    def check_failures(self, address: str, *, one_more: bool = False) -> None:
        """Raise `TooManyRequests` while too many credentials from a network address were no good; count another."""
        if self._servers is None:
            return
        if wait := self._servers.wait(("", f"!{address}"), self._clock.now(), count=one_more):
            raise _too_often("this address, with credentials that are no good,", wait)

    def _count(self, rate: RateLimit | None, key: tuple[str, str], client_id: str, who: str) -> None:
        now = self._clock.now()
        # First the one: what a single caller is refused is not to use up what the extension may ask.
        if rate is not None and (wait := rate.wait(key, now)):
            raise _too_often(who, wait)
        if self._clients is not None and (wait := self._clients.wait((client_id, ""), now)):
            raise _too_often(f"the client id {client_id[:100]}" if client_id else "those without a client id", wait)


def _too_often(who: str, ms: int) -> TooManyRequests:
    seconds = math.ceil(ms / SECOND)
    return TooManyRequests("Too many requests", f"{who} asks too often; wait {seconds} s", retry_after=seconds)
