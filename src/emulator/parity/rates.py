"""The rates of the sandbox, beside those that production would have enforced."""

from __future__ import annotations

from emulator.callers import Caller
from emulator.clock import Clock
from emulator.errors import TooManyRequests
from emulator.limits.rate_limit import RateLimits
from emulator.observability.request_context import current
from emulator.parity.rules import CALLER_RATE, CLIENT_RATE, FREER_RATE, REGISTRATION, UNJUDGED, is_final
from emulator.parity.service import is_reached, note


class ComparedRates(RateLimits):
    """Limits as `RateLimits` does, and counts in other limits what production would have counted."""

    def __init__(self, clock: Clock, *, per_caller: int, per_client: int, production: int) -> None:
        """`production` is the rate of a caller there."""
        super().__init__(clock, per_caller=per_caller, per_client=per_client)
        self._callers_there = RateLimits(clock, per_caller=production, per_client=0)
        self._clients_there = RateLimits(clock, per_caller=0, per_client=per_client)

    def clear(self) -> None:
        super().clear()
        self._callers_there.clear()
        self._clients_there.clear()

    def check(self, caller: Caller, address: str = "") -> None:
        if caller.production:
            note(caller.production)
        context = current.get()
        if context is not None and is_final(context.production):
            if address and context.production != UNJUDGED:
                self._count_failure(address)
            super().check(caller)
            return
        try:
            self._callers_there.check(caller)
        except TooManyRequests:
            note(CALLER_RATE)
        if self._clients is None:
            super().check(caller)
        else:
            self._compare_clients(caller)

    def check_address(self, address: str) -> None:
        context = current.get()
        if context is not None and context.production == REGISTRATION:
            self._count_failure(address)
        elif is_reached():
            try:
                self._callers_there.check_address(address)
            except TooManyRequests:
                note(CALLER_RATE)
        super().check_address(address)

    def check_failures(self, address: str, *, one_more: bool = False) -> None:
        try:
            self._callers_there.check_failures(address, one_more=one_more)
        except TooManyRequests:
            note(CALLER_RATE)
        super().check_failures(address, one_more=one_more)

    def _compare_clients(self, caller: Caller) -> None:
        is_over = False
        if is_reached():
            try:
                self._clients_there.check(caller)
            except TooManyRequests:
                is_over = True
                note(CLIENT_RATE)
        try:
            super().check(caller)
        except TooManyRequests:
            if not is_over:
                note(FREER_RATE)
            raise

    def _count_failure(self, address: str) -> None:
        """Count a credential that production refuses; it would answer 429 before that if the address had too many."""
        try:
            self._callers_there.check_failures(address, one_more=True)
        except TooManyRequests:
            if (context := current.get()) is not None:
                context.production = CALLER_RATE
