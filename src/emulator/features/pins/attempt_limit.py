"""Limits how often PINs are requested and guessed (ruling T4).

A PIN is one of 30^6 = 729 million and is valid for 5 minutes. With 500 live PINs of one client id at all times, one
guess finds one of them with a chance of 500 / 729,000,000. By default, all addresses together have 60 wrong PINs a
minute per client id, 86,400 a day. Beyond that each address has 5 an hour, 120 a day. So within a day

- one address (10 a minute, 14,400 a day) finds a PIN with a chance of 1 %,
- 1,000 addresses (86,400 + 120,000) with 13 %, against 14,400,000 guesses if only addresses were limited.

A correct PIN never counts, so guesses from one address do not keep out the game at another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Final

from emulator.callers import Caller
from emulator.clock import HOUR, MINUTE, Clock
from emulator.config.environment import AnonymousLimits
from emulator.errors import BadRequest
from emulator.features.pins.refusals import too_many_pins, too_many_wrong_pins
from emulator.limits.connection_limit import network_of
from emulator.limits.rate_limit import RateLimit, seconds_of
from emulator.parity.service import PIN_CHANNEL, PIN_GUESSES, ProductionCheck, current_verdict, is_reached

ATTEMPTS_UNDER_ATTACK: Final = 5
"""Wrong PINs that one address has in an hour, once a client id has had too many."""


class AttemptLimit:
    """Counts requested PINs per address, and wrong PINs per address, client id and channel.

    A limit of 0 means no limit.
    """

    def __init__(self, clock: Clock, limits: AnonymousLimits) -> None:
        self._clock = clock
        self._requests = _per_minute(limits.address_pins)
        self._addresses = _per_minute(limits.address_pin_attempts)
        self._channels = _per_minute(limits.address_pin_attempts)
        self._clients = _per_minute(limits.client_pin_attempts)
        self._under_attack = RateLimit(ATTEMPTS_UNDER_ATTACK, HOUR, HOUR)

    def count_request(self, address: str) -> None:
        """Count a PIN for an unauthenticated caller; raises `TooManyRequests`."""
        if wait := self._count(self._requests, ("", network_of(address))):
            raise too_many_pins(seconds=wait)

    @contextmanager
    def attempt(self, client_id: str, address: str) -> Iterator[None]:
        """Count an attempt with a PIN by an unauthenticated caller, by address.

        Raises `TooManyRequests` at the limit.
        """
        network, client = network_of(address), (client_id, "")
        limit, key = self._clients, client
        if limit is not None and limit.delay(client, self._clock.now(), count=False):
            limit, key = self._under_attack, (client_id, network)
        with (
            self._attempt(self._addresses, ("", network), "wrong PINs from this address"),
            self._attempt(limit, key, "wrong PINs for this client id"),
        ):
            yield

    def attempt_of_caller(self, caller: Caller) -> AbstractContextManager[None]:
        """Count an attempt with a PIN by a broadcaster.

        It counts by channel and user, so that others of the channel keep their attempts.
        """
        key = (caller.client_id, f"{caller.channel_id}\0{caller.opaque_id}")
        return self._attempt(self._channels, key, "wrong PINs of this user for this channel")

    @contextmanager
    def _attempt(self, limit: RateLimit | None, key: tuple[str, str], what: str) -> Iterator[None]:
        """Count an attempt, which raises `TooManyRequests`, and take it back unless the block raises `BadRequest`.

        It is counted before the PIN is looked up, so that simultaneous attempts cannot exceed the limit.
        """
        if wait := self._count(limit, key):
            raise too_many_wrong_pins(what=what, seconds=wait)
        is_wrong = False
        try:
            yield
        except BadRequest:
            is_wrong = True
            raise
        finally:
            if limit is not None and not is_wrong:
                limit.refund(key)

    def clear(self) -> None:
        """Forget all counts, after a reset."""
        for limit in (self._requests, self._addresses, self._channels, self._clients, self._under_attack):
            if limit is not None:
                limit.clear()

    def _count(self, limit: RateLimit | None, key: tuple[str, str]) -> int:
        """Count one attempt and return 0, or return the seconds to wait."""
        return 0 if limit is None else seconds_of(limit.delay(key, self._clock.now()))


class ComparedAttempts(AttemptLimit):
    """Limits attempts as `AttemptLimit` does, and counts separately what production would have limited."""

    def __init__(self, clock: Clock, limits: AnonymousLimits, production: AnonymousLimits) -> None:
        super().__init__(clock, limits)
        self._there = AttemptLimit(clock, production)

    def count_request(self, address: str) -> None:
        if is_reached():
            with ProductionCheck(PIN_GUESSES):
                self._there.count_request(address)
        super().count_request(address)

    @contextmanager
    def attempt(self, client_id: str, address: str) -> Iterator[None]:
        with _attempt_in_production(self._there.attempt(client_id, address)), super().attempt(client_id, address):
            yield

    @contextmanager
    def attempt_of_caller(self, caller: Caller) -> Iterator[None]:
        there = self._there.attempt_of_caller(caller)
        with _attempt_in_production(there), super().attempt_of_caller(caller):
            yield

    def clear(self) -> None:
        super().clear()
        self._there.clear()


class _WrongThere(BadRequest):
    """Raised in production's count for a PIN that is right here but would be wrong in production."""


@contextmanager
def _attempt_in_production(attempt: AbstractContextManager[None]) -> Iterator[None]:
    """Count an attempt against production's limits, if production would reach this check.

    A refusal becomes the verdict.
    """
    if not is_reached():
        yield
        return
    with suppress(_WrongThere), ExitStack() as stack:
        with ProductionCheck(PIN_GUESSES):
            stack.enter_context(attempt)
        yield
        if current_verdict() == PIN_CHANNEL:
            raise _WrongThere("")


def _per_minute(amount: int) -> RateLimit | None:
    return RateLimit(amount, MINUTE, MINUTE) if amount else None
