"""Limits the rates of callers, client ids and network addresses."""

from __future__ import annotations

import math

from emulator.core.callers import EXTENSION_WRITERS, Caller
from emulator.core.clock import SECOND, Clock
from emulator.core.limits.connection_limit import network_of
from emulator.core.limits.refusals import too_many_credentials, too_many_requests

WINDOW = 5 * SECOND
"""Ms over which the rate is averaged. An idle caller may send the requests of this whole window at once."""
SERVER_FACTOR = 10
"""The rate of an extension's servers and of unauthenticated addresses, as a multiple of a viewer's."""
OF_CALLER = "from this caller"
_SWEEP_SIZE = 10_000
_NANOSECONDS = 1_000_000
"""Per ms. Integers add up exactly, fractions of a ms would not."""


class RateLimit:
    """Allows `amount` per `period` ms and key, by the generic cell rate algorithm: one number per key, no queue.

    An `amount` of 0 means no limit.

    A key that was idle for `window` ms may then use the amount for the whole window at once. These are ms of real time,
    however the service's clock is set.
    """

    def __init__(self, clock: Clock, amount: int, period: int = SECOND, window: int = WINDOW) -> None:
        self._ticks = clock.ticks
        self._spacing = max(1, period * _NANOSECONDS // amount) if amount else 0
        self._window = window * _NANOSECONDS
        self._due: dict[tuple[str, str], int] = {}
        """The tick at which all requests of a key would be done, if they were served one by one at the rate."""
        self._sweep_at = _SWEEP_SIZE

    def delay(self, key: tuple[str, str], cost: int = 1, *, count: bool = True) -> int:
        """Return 0 and count `cost` now, or return the ms to wait. `count=False` only checks."""
        if not self._spacing:
            return 0
        at = self._ticks()
        due, latest = self._due.get(key, 0), at + self._window
        if due < at:
            due = at
        due += self._spacing * cost
        if due > latest:
            return -((latest - due) // _NANOSECONDS)
        if not count:
            return 0
        self._due[key] = due
        if len(self._due) >= self._sweep_at:
            self._sweep(at)
        return 0

    def refund(self, key: tuple[str, str]) -> None:
        """Undo the count of one request."""
        if key in self._due:
            self._due[key] -= self._spacing

    def clear(self) -> None:
        self._due.clear()

    def _sweep(self, at: int) -> None:
        self._due = {key: due for key, due in self._due.items() if due > at}
        self._sweep_at = max(_SWEEP_SIZE, 2 * len(self._due))


class RateLimits:
    """Limits the rates of callers, addresses and client ids, per process; a rate of 0 means no limit."""

    def __init__(self, clock: Clock, *, per_caller: int, per_client: int) -> None:
        self._callers = RateLimit(clock, per_caller)
        self._servers = RateLimit(clock, per_caller * SERVER_FACTOR)
        self._clients = RateLimit(clock, per_client)

    def clear(self) -> None:
        for limit in (self._callers, self._servers, self._clients):
            limit.clear()

    def check(self, caller: Caller, address: str = "") -> None:
        """Count a request of a caller and its client id; raises `TooManyRequests` above either rate.

        `address` is the caller's network address, if the request has a token.
        """
        whose, wait = self.excess(caller)
        if wait:
            raise too_many_requests(by=whose, seconds=seconds_of(wait))

    def excess(self, caller: Caller) -> tuple[str, int]:
        """Count a request. Above a rate, return whose rate that is, and the ms to wait; else 0 ms."""
        limit = self._servers if caller.role in EXTENSION_WRITERS else self._callers
        client_id = caller.client_id
        # The caller first: its refused requests must not use up the rate of the client id.
        if wait := limit.delay((client_id, caller.opaque_id)):
            return OF_CALLER, wait
        if wait := self._clients.delay((client_id, "")):
            return f"with client id {client_id[:100]}" if client_id else "without a client id", wait
        return "", 0

    def check_address(self, address: str) -> None:
        """Count an unauthenticated request. It never counts toward the client id that it names."""
        if wait := self._servers.delay(("", f"@{network_of(address)}")):
            raise too_many_requests(by="from this address", seconds=seconds_of(wait))

    def check_failures(self, address: str, *, one_more: bool = False) -> None:
        """Raise `TooManyRequests` if an address sent too many invalid credentials.

        With `one_more`, count another one.
        """
        key = ("", f"!{network_of(address)}")
        if wait := self._servers.delay(key, count=one_more):
            raise too_many_credentials(seconds=seconds_of(wait))


def seconds_of(ms: int) -> int:
    """Return a wait of `ms` in whole seconds, rounded up, for `Retry-After`."""
    return math.ceil(ms / SECOND)
