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
from contextlib import contextmanager

from emulator.core.clock import HOUR, MINUTE, Clock
from emulator.core.environment import AnonymousLimits
from emulator.core.errors import BadRequest, Facts, TooManyRequests, refusal
from emulator.core.limits import RateLimit, network_of, whole_seconds
from emulator.core.parity import PIN_CHANNEL, PIN_GUESSES, ProductionCheck, current_verdict, is_check_reached

_TOO_MANY = (TooManyRequests, "Too many requests", "T4")


@refusal(*_TOO_MANY, "Too many PINs were requested", "Wait {seconds} s, then request the PIN again.")
def too_many_pins(*, seconds: int) -> Facts:
    what = "PINs requested from this address"
    detail, needed = f"too many {what}; retry in {seconds} s", f"the next request in {seconds} s"
    return Facts(detail, f"more {what} than the limit", needed, (), seconds)


@refusal(*_TOO_MANY, "Too many wrong PINs", "Wait {seconds} s, then type the PIN that the extension shows.")
def too_many_wrong_pins(*, what: str, seconds: int) -> Facts:
    detail = f"too many {what}; retry in {seconds} s"
    return Facts(detail, f"more {what} than the limit", f"the next attempt in {seconds} s", (), seconds)


_HOURLY_LIMITS = (5, 20, 1_000, 1)
"""Wrong PINs an hour, once a client id has had too many: of a network, of a wide network, of all, and of a wide network
beyond that.
"""
CountedLimit = tuple[RateLimit, tuple[str, str], str]
"""A limit, the key that counts toward it, and what it limits, in words."""


class AttemptLimit:
    """Counts requested PINs per network, and wrong PINs per network, client id and channel.

    A limit of 0 means no limit.
    """

    def __init__(self, clock: Clock, limits: AnonymousLimits, production: AnonymousLimits | None = None) -> None:
        """With the limits of `production`, also counts what those would refuse, which becomes the verdict."""
        self._production = AttemptLimit(clock, production) if production else None
        self._requests = RateLimit(clock, limits.address_pins, MINUTE, MINUTE)
        self._attempts = RateLimit(clock, limits.address_pin_attempts, MINUTE, MINUTE)
        """By address without a client id, or by client id, channel and user."""
        self._clients = RateLimit(clock, limits.client_pin_attempts, MINUTE, MINUTE)
        self._under_attack = [RateLimit(clock, amount, HOUR, HOUR) for amount in _HOURLY_LIMITS]

    def count_request(self, address: str) -> None:
        """Count a PIN for an unauthenticated caller; raises `TooManyRequests`."""
        if self._production is not None and is_check_reached():
            with ProductionCheck(PIN_GUESSES):
                self._production.count_request(address)
        if wait := self._requests.delay(("", network_of(address))):
            raise too_many_pins(seconds=whole_seconds(wait))

    def clear(self) -> None:
        """Forget all counts, after a reset."""
        for limit in (self._requests, self._attempts, self._clients, *self._under_attack):
            limit.clear()
        if self._production is not None:
            self._production.clear()

    def _limits_of_attempt(self, client_id: str, address: str, user: str) -> list[CountedLimit]:
        """Return what an attempt counts toward: one of a user in a channel, or an unauthenticated one of an address."""
        if user:
            return [(self._attempts, (client_id, user), "wrong PINs of this user for this channel")]
        of_address = (self._attempts, ("", network_of(address)), "wrong PINs from this address")
        client, whose = (client_id, ""), "wrong PINs for this client id"
        if not self._clients.delay(client, count=False):
            return [of_address, (self._clients, client, whose)]
        network, wide = (client_id, network_of(address)), (client_id, network_of(address, 16, 32))
        of_network, of_wide, together, last = self._under_attack
        if together.delay(client, count=False):
            return [of_address, (last, wide, whose)]
        slower = [(of_network, network, whose), (of_wide, wide, whose), (together, client, whose)]
        return [of_address, *slower]

    @contextmanager
    def attempt(self, client_id: str, address: str = "", user: str = "") -> Iterator[None]:
        """Count an attempt with a PIN: of an unauthenticated caller by network, of a broadcaster by channel and user.

        So others of the channel keep their attempts. Raises `TooManyRequests` at the limit. The attempt is taken back
        unless the block raises `BadRequest`, or the PIN is wrong in production. It is counted before the PIN is looked
        up, so that simultaneous attempts cannot exceed the limit.
        """
        here, there, is_wrong = list[CountedLimit](), list[CountedLimit](), False
        if self._production is not None and is_check_reached():
            with ProductionCheck(PIN_GUESSES):
                there = _count_attempt(self._production._limits_of_attempt(client_id, address, user))
        try:
            here = _count_attempt(self._limits_of_attempt(client_id, address, user))
            yield
        except BadRequest:
            is_wrong = True
            raise
        finally:
            if not is_wrong:
                _take_back(here)
                _take_back(there if current_verdict() != PIN_CHANNEL else [])


def _count_attempt(counts: list[CountedLimit]) -> list[CountedLimit]:
    """Count an attempt toward each limit, and return them. Raises `TooManyRequests`; then it counts toward none."""
    for position, (limit, key, whose) in enumerate(counts):
        if wait := limit.delay(key):
            _take_back(counts[:position])
            raise too_many_wrong_pins(what=whose, seconds=whole_seconds(wait))
    return counts


def _take_back(counts: list[CountedLimit]) -> None:
    for limit, key, _ in counts:
        limit.refund(key)
