"""Limits how often PINs are requested and guessed (ruling T4).

A PIN is one of 30^6 = 729 million and is valid for 5 minutes. With 500 live PINs of one client id at all times, one
guess finds one of them with a chance of 500 / 729,000,000. By default a network, which is an IPv4 address or an IPv6
/48, has 10 wrong PINs a minute, and all networks together have 60 a minute per client id. Beyond that, within an hour,

- a network has 5 and a wide network, an IPv4 /16 or an IPv6 /32, has 20;
- all together have 1,000, and then a wide network has 1 more.

Each limit allows its amount at once, and then as much per period. So this is what finds a PIN within a day:

- one address or one /48: 10 + 14,400 guesses, 1 %;
- one /32: 60 + 86,400 + 20 + 480 = 86,960 guesses, 6 %;
- 100 addresses of as many /16: 60 + 86,400 + 100 * (5 + 120) = 98,960 guesses, 7 %;
- 1,000 addresses of as many /16: 60 + 86,400 + 1,000 + 24,000 + 1,000 * (1 + 24) = 136,460 guesses, 9 %;
- 10,000 addresses of as many /16: 361,460 guesses, 22 %.

A correct PIN never counts. Beyond a limit no PIN is looked up, so a game gets in as long as its own networks have not
used up theirs: guesses from elsewhere do not keep it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Final

from emulator.core.callers import Caller
from emulator.core.clock import HOUR, MINUTE, Clock
from emulator.core.config.environment import AnonymousLimits
from emulator.core.errors import BadRequest
from emulator.core.limits.connection_limit import network_of
from emulator.core.limits.rate_limit import RateLimit, seconds_of
from emulator.core.parity import PIN_CHANNEL, PIN_GUESSES, ProductionCheck, current_verdict, is_reached
from emulator.features.pins.rules import too_many_pins, too_many_wrong_pins

_UNDER_ATTACK: Final = (5, 20, 1_000, 1)
"""Wrong PINs an hour, once a client id has had too many: of a network, of a wide network, of all, and of a wide network
beyond that.
"""


class AttemptLimit:
    """Counts requested PINs per network, and wrong PINs per network, client id and channel.

    A limit of 0 means no limit.
    """

    def __init__(self, clock: Clock, limits: AnonymousLimits, production: AnonymousLimits | None = None) -> None:
        """With the limits of `production`, also counts what those would refuse, which becomes the verdict."""
        self._there = AttemptLimit(clock, production) if production else None
        self._requests = RateLimit(clock, limits.address_pins, MINUTE, MINUTE)
        self._addresses = RateLimit(clock, limits.address_pin_attempts, MINUTE, MINUTE)
        self._channels = RateLimit(clock, limits.address_pin_attempts, MINUTE, MINUTE)
        self._clients = RateLimit(clock, limits.client_pin_attempts, MINUTE, MINUTE)
        self._under_attack = [RateLimit(clock, amount, HOUR, HOUR) for amount in _UNDER_ATTACK]

    def count_request(self, address: str) -> None:
        """Count a PIN for an unauthenticated caller; raises `TooManyRequests`."""
        if self._there is not None and is_reached():
            with ProductionCheck(PIN_GUESSES):
                self._there.count_request(address)
        if wait := self._requests.delay(("", network_of(address))):
            raise too_many_pins(seconds=seconds_of(wait))

    @contextmanager
    def attempt(self, client_id: str, address: str) -> Iterator[None]:
        """Count an attempt with a PIN by an unauthenticated caller, by network.

        Raises `TooManyRequests` at the limit.
        """
        with ExitStack() as stack:
            if self._there is not None:
                stack.enter_context(_attempt_in_production(self._there.attempt(client_id, address)))
            stack.enter_context(
                self._attempt(self._addresses, ("", network_of(address)), "wrong PINs from this address")
            )
            for limit, key in self._counts_of(client_id, address):
                stack.enter_context(self._attempt(limit, key, "wrong PINs for this client id"))
            yield

    def _counts_of(self, client_id: str, address: str) -> list[tuple[RateLimit, tuple[str, str]]]:
        """Return the limits of wrong PINs for a client id, each with the key that counts toward it."""
        client = (client_id, "")
        if not self._clients.delay(client, count=False):
            return [(self._clients, client)]
        network, wide = (client_id, network_of(address)), (client_id, network_of(address, 16, 32))
        of_network, of_wide, together, last = self._under_attack
        if together.delay(client, count=False):
            return [(last, wide)]
        return [(of_network, network), (of_wide, wide), (together, client)]

    @contextmanager
    def attempt_of_caller(self, caller: Caller) -> Iterator[None]:
        """Count an attempt with a PIN by a broadcaster.

        It counts by channel and user, so that others of the channel keep their attempts.
        """
        key = (caller.client_id, f"{caller.channel_id}\0{caller.opaque_id}")
        with ExitStack() as stack:
            if self._there is not None:
                stack.enter_context(_attempt_in_production(self._there.attempt_of_caller(caller)))
            stack.enter_context(self._attempt(self._channels, key, "wrong PINs of this user for this channel"))
            yield

    @contextmanager
    def _attempt(self, limit: RateLimit, key: tuple[str, str], what: str) -> Iterator[None]:
        """Count an attempt, which raises `TooManyRequests`, and take it back unless the block raises `BadRequest`.

        It is counted before the PIN is looked up, so that simultaneous attempts cannot exceed the limit.
        """
        if wait := limit.delay(key):
            raise too_many_wrong_pins(what=what, seconds=seconds_of(wait))
        is_wrong = False
        try:
            yield
        except BadRequest:
            is_wrong = True
            raise
        finally:
            if not is_wrong:
                limit.refund(key)

    def clear(self) -> None:
        """Forget all counts, after a reset."""
        for limit in (self._requests, self._addresses, self._channels, self._clients, *self._under_attack):
            limit.clear()
        if self._there is not None:
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
