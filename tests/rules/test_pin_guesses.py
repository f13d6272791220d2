"""How many PINs an attacker can guess, by the networks that it has (`docs/operating.md`, Guessed PINs) (ruling T4)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from emulator.core.clock import MINUTE, Clock
from emulator.core.environment import PRODUCTION
from emulator.core.errors import BadRequest, TooManyRequests
from emulator.core.limits import masked_address, network_of
from emulator.features.pins.attempt_limit import AttemptLimit
from support.service import CLIENT_ID, StillTicks

MINUTES = 60
BURST = 60
"""Wrong PINs that all networks together have at once."""


class Attack:
    """Guesses PINs of one client id from many addresses, once a minute until each is refused."""

    def __init__(self) -> None:
        self.ticks = StillTicks()
        self.limit = AttemptLimit(Clock(ticks=self.ticks), PRODUCTION.anonymous)

    def is_looked_up(self, address: str, *, is_right: bool = False) -> bool:
        """Send a PIN; return whether the service looks it up."""
        try:
            with self.limit.attempt(CLIENT_ID, address):
                if not is_right:
                    raise BadRequest("wrong")
        except BadRequest:
            return True
        except TooManyRequests:
            return False
        return True

    def guesses(self, addresses: Sequence[str], minutes: int = MINUTES) -> int:
        """Return how many wrong PINs the service looks up."""
        found = 0
        for _ in range(minutes):
            for address in addresses:
                while self.is_looked_up(address):
                    found += 1
            self.ticks.let_pass(MINUTE)
        return found


def addresses_of_a_48(count: int) -> list[str]:
    """Return addresses of as many /64."""
    return [f"2001:db8:7:{number:x}::1" for number in range(count)]


def addresses_of_a_32(count: int) -> list[str]:
    """Return addresses of as many /48."""
    return [f"2001:db8:{number:x}::1" for number in range(count)]


def addresses_apart(count: int) -> list[str]:
    """Return addresses of as many /16."""
    return [f"{1 + number // 250}.{number % 250}.0.1" for number in range(count)]


@pytest.mark.parametrize(
    ("addresses", "most"),
    [
        (["192.0.2.1"], 10 + 10 * MINUTES),
        (addresses_of_a_48(100), 10 + 10 * MINUTES),
        (addresses_of_a_32(100), BURST + 60 * MINUTES + 20 + 20),
        (addresses_apart(100), BURST + 60 * MINUTES + 100 * (5 + 5)),
        (addresses_apart(1_000), BURST + 60 * MINUTES + 1_000 * (1 + 1) + 1_000 * (1 + 1)),
    ],
    ids=["one address", "a /48", "a /32", "100 addresses", "1,000 addresses"],
)
def test_an_attacker_has_as_many_guesses_as_documented(addresses: list[str], most: int):
    assert 0.8 * most <= Attack().guesses(addresses) <= most


def test_guesses_about_one_client_id_leave_those_of_others():
    attack = Attack()
    attack.guesses(addresses_apart(1_000), minutes=2)
    attack.ticks.let_pass(MINUTE)

    with pytest.raises(BadRequest, match="wrong"), attack.limit.attempt("another", "1.0.0.1"):
        raise BadRequest("wrong")


@pytest.mark.parametrize(
    ("address", "network", "wide", "hidden"),
    [
        ("203.0.113.7", "203.0.113.7/32", "203.0.0.0/16", "203.0.113.0"),
        ("::ffff:203.0.113.7", "203.0.113.7/32", "203.0.0.0/16", "203.0.113.0"),
        ("2001:db8:1:2::3", "2001:db8:1::/48", "2001:db8::/32", "2001:db8:1::"),
        ("fe80::1%eth0", "fe80::/48", "fe80::/32", "fe80::"),
        ("/run/extcli.sock", "/run/extcli.sock", "/run/extcli.sock", ""),
        ("", "", "", ""),
    ],
)
def test_the_networks_of_an_address(address: str, network: str, wide: str, hidden: str):
    assert (network, wide, hidden) == (network_of(address), network_of(address, 16, 32), masked_address(address))
