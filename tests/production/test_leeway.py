"""`--leeway`: the tolerated clock skew of token signers, to the second (rulings A1, T3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from emulator.core.clock import Clock
from emulator.core.environment import PRODUCTION, SANDBOX
from emulator.core.settings import Settings
from support.authentication import authenticate, refused
from support.pins import create_pin
from support.service import CHANNEL, CLIENT_ID, OURS, SECRET, Client, LiveServer, live_server
from support.socket_client import SocketClient

NOW = 2_000_000_000
LEEWAY = 30


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.set(NOW * 1000)
    clock.freeze(True)
    return clock


@pytest.fixture
def lenient(request: pytest.FixtureRequest, clock: Clock) -> Iterator[LiveServer]:
    """A service of production, unless the test says otherwise."""
    environment = getattr(request, "param", PRODUCTION)
    with live_server(Settings(environment, extensions={CLIENT_ID: OURS}, leeway=LEEWAY * 1000), clock=clock) as live:
        yield live


def status(client: Client) -> int:
    return client.get("user_info").status_code


@pytest.mark.parametrize("lenient", [SANDBOX, PRODUCTION], ids=lambda each: each.name, indirect=True)
def test_exp_may_be_past_and_nbf_in_the_future_by_the_leeway(lenient: LiveServer, clock: Clock):
    ends = [NOW - LEEWAY + 1, NOW - LEEWAY, NOW - LEEWAY - 1]
    assert [200, 401, 401] == [status(lenient.client("viewer", exp=end)) for end in ends]
    starts = [NOW, NOW + LEEWAY, NOW + LEEWAY + 1]
    assert [200, 200, 401] == [status(lenient.client("viewer", exp=NOW + 600, nbf=start)) for start in starts]

    client, found = lenient.client("viewer", exp=NOW), {}
    for ms in (0, (LEEWAY * 1000) - 1, LEEWAY * 1000):  # the same token, which the service remembers
        clock.set(NOW * 1000 + ms)
        found[ms] = status(client)
    assert {0: 200, 29_999: 200, 30_000: 401} == found


@pytest.mark.parametrize("past", [0, LEEWAY * 1000 - 1])
def test_an_issued_token_in_its_leeway_makes_nothing(lenient: LiveServer, clock: Clock, past: int):
    owner = lenient.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=NOW * 2)
    with SocketClient(lenient) as game:
        pair = authenticate(game, pin=create_pin(owner))
        clock.set(_claims(pair["jwt"])["exp"] * 1000 + past)
        issued, other = lenient.bearer(pair["jwt"]), create_pin(owner, "pin", json={"identifier": CLIENT_ID})

        made = [
            refused(game, jwt=pair["jwt"]),
            issued.post("link/pin"),
            issued.post("validate_pin", json={"pin": other}),
        ]

    assert 200 == status(issued)
    assert [401] * 3 == [made[0][0], *(each.status_code for each in made[1:])]
    assert "token expired: exp" in made[1].json()["info"]


@pytest.mark.parametrize("left", [1, 500, 999, 1_000, 1_001])
def test_tokens_made_just_before_a_token_expires_end_with_it(lenient: LiveServer, clock: Clock, left: int):
    owner = lenient.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=NOW * 2)
    with SocketClient(lenient) as game:
        first = authenticate(game, pin=create_pin(owner))["jwt"]
        ends = _claims(first)["exp"]
        clock.set(ends * 1000 - left)
        made = authenticate(game, jwt=first)

    assert [ends] * 2 == [_claims(made[each])["exp"] for each in ("jwt", "refresh")]


def test_leeway_does_not_extend_refresh_tokens_or_pins(lenient: LiveServer, clock: Clock):
    with SocketClient(lenient) as game:
        pin = {"client_id": CLIENT_ID, "pin": _pin(lenient)}
        pair = game.data("authenticate", data=pin)
        refresh = {"client_id": CLIENT_ID, "refresh": pair["refresh"]}
        end = int(_claims(pair["refresh"])["exp"])

        clock.set(NOW * 1000 + 5 * 60_000)
        late_pin = game.error("authenticate", data=pin)
        clock.set(end * 1000 - 1)
        in_time = game.request("authenticate", data=refresh)
        clock.set(end * 1000)
        late_refresh = game.error("authenticate", data=refresh)

    assert (400, 400) == (late_pin["status"], late_refresh["status"])
    assert "errors" not in in_time


def test_the_leeway_applies_to_receipts(lenient: LiveServer):
    product = {"sku": "hat", "cost": {"amount": 5, "type": "bits"}}
    receipt = {"data": {"transactionId": "t1", "userId": "5", "product": product}}
    client = lenient.client("viewer", user="5", channel="777", exp=NOW + 600)

    statuses = [
        client.post(
            "bits/transactions", json={"transactionReceipt": jwt.encode({"exp": end, **receipt}, SECRET)}
        ).status_code
        for end in (NOW - LEEWAY + 1, NOW - LEEWAY)
    ]

    assert [201, 400] == statuses


def _pin(live: LiveServer) -> str:
    broadcaster = live.client("broadcaster", user="777", channel="777", exp=NOW + 600)
    return str(broadcaster.post("link/pin").raise_for_status().json()["pin"])


def _claims(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))
