"""Request rates in the sandbox, with a second count against production's limits."""

from __future__ import annotations

from emulator.callers import EXTENSION_WRITERS, Caller
from emulator.clock import Clock
from emulator.errors import TooManyRequests
from emulator.limits.rate_limit import RateLimits
from emulator.observability.request_context import current_request
from emulator.parity.service import (
    CALLER_RATE,
    CLIENT_RATE,
    FREER_RATE,
    REGISTRATION,
    UNJUDGED,
    ProductionCheck,
    is_final,
    is_reached,
    note,
)


class ComparedRates(RateLimits):
    """Limits requests as `RateLimits` does, and counts them separately against production's limits."""

    def __init__(self, clock: Clock, *, per_caller: int, per_client: int, production: int) -> None:
        """`production` is a caller's rate in production; 0 means no limit."""
        super().__init__(clock, per_caller=per_caller, per_client=per_client)
        self._there = RateLimits(clock, per_caller=production, per_client=per_client)
        there = self._there
        self._callers_there, self._servers_there, self._clients_there = there._callers, there._servers, there._clients
        self._is_limited = bool(per_caller or per_client)

    def clear(self) -> None:
        super().clear()
        self._there.clear()

    def check(self, caller: Caller, address: str = "", *, now: int) -> None:
        context = current_request.get()
        if context is None:
            super().check(caller, now=now)
            return
        if caller.production and not is_final(context.production):
            context.production = caller.production
        if not is_final(context.production):
            limit = self._servers_there if caller.role in EXTENSION_WRITERS else self._callers_there
            if limit is not None and limit.delay((caller.client_id, caller.opaque_id), now):
                context.production = CALLER_RATE
            elif self._clients is not None:
                self._compare_clients(caller, now)
                return
        elif address and context.production != UNJUDGED:  # production counts a refused token, at its address
            self._count_failure(address)
        if self._is_limited:
            super().check(caller, now=now)

    def check_address(self, address: str) -> None:
        context = current_request.get()
        if context is not None and context.production == REGISTRATION:
            self._count_failure(address)
        elif is_reached():
            with ProductionCheck(CALLER_RATE):
                self._there.check_address(address)
        super().check_address(address)

    def check_failures(self, address: str, *, one_more: bool = False) -> None:
        with ProductionCheck(CALLER_RATE):
            self._there.check_failures(address, one_more=one_more)
        super().check_failures(address, one_more=one_more)

    def _compare_clients(self, caller: Caller, now: int) -> None:
        limit = self._clients_there
        is_over = limit is not None and limit.delay((caller.client_id, ""), now) > 0
        if is_over:
            note(CLIENT_RATE)
        try:
            super().check(caller, now=now)
        except TooManyRequests:
            if not is_over:
                note(FREER_RATE)
            raise

    def _count_failure(self, address: str) -> None:
        """Count a credential that production would refuse.

        After too many from one address, production would return 429.
        """
        try:
            self._there.check_failures(address, one_more=True)
        except TooManyRequests:
            if (context := current_request.get()) is not None:
                context.production = CALLER_RATE
