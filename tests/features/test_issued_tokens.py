"""What an issued token may make: nothing that outlives it, and nothing at all once its link has ended (ruling T3)."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from emulator.core.clock import DAY, SECOND
from support.authentication import authenticate, refused
from support.pins import create_pin, linked_channel, validate
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient, request_pin

START = 2_000_000_000_000


def exp(token: str) -> int:
    """The `exp` of a token, in Unix ms."""
    return int(jwt.decode(token, options={"verify_signature": False})["exp"]) * SECOND


@pytest.fixture
def pair(live: LiveServer, unlinked: SocketClient) -> dict[str, Any]:
    """The tokens of a game in channel 777, issued at `START`."""
    live.set(START)
    return authenticate(unlinked, pin=request_pin(live))


@pytest.fixture
def access(live: LiveServer, pair: dict[str, Any]) -> Client:
    """A client with the access token of the pair."""
    return live.bearer(pair["jwt"])


def pin_token(live: LiveServer, validator: Client) -> str:
    """A token of `POST pin` whose PIN this client has validated."""
    with Client(base_url=live.url) as client:
        issued = client.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
    assert 200 == validate(validator, issued["pin"])
    return str(issued["token"])


def test_a_jwt_login_with_an_issued_token_gives_nothing_that_outlives_it(live, unlinked, pair):
    live.advance(3 * DAY)

    second = authenticate(unlinked, jwt=pair["jwt"])
    third = authenticate(unlinked, refresh=second["refresh"])

    assert [START + 7 * DAY] * 5 == [exp(each) for each in (pair["jwt"], *_tokens(second), *_tokens(third))]
    assert START + 365 * DAY == exp(pair["refresh"])


@pytest.mark.parametrize("how", ["requested", "validated"])
def test_a_pin_of_an_issued_token_gives_nothing_that_outlives_it(live, unlinked, stranger, access, how: str):
    live.advance(3 * DAY)
    if how == "requested":
        pin = create_pin(access)
    else:
        pin = create_pin(stranger, "/v1/e/pin", json={"identifier": CLIENT_ID})
        validate(access, pin)

    assert [START + 7 * DAY] * 2 == [exp(each) for each in _tokens(authenticate(unlinked, pin=pin))]


def test_a_pin_token_validated_with_an_issued_token_does_not_outlive_it(live, access):
    live.advance(3 * DAY)
    client = live.bearer(pin_token(live, access))

    live.advance(4 * DAY - 1)
    before = client.get("user_info").status_code
    live.advance(1)

    assert [200, 401] == [before, client.get("user_info").status_code]


def test_a_jwt_login_with_a_pin_token_gives_nothing_that_outlives_it(live, unlinked, broadcaster):
    live.set(START)
    token = pin_token(live, broadcaster)
    live.advance(DAY)

    pair = authenticate(unlinked, jwt=token)

    assert [START + 7 * DAY] * 3 == [exp(each) for each in (token, *_tokens(pair))]


def test_after_delete_pin_an_issued_token_makes_and_validates_nothing(unlinked, pair, stranger, access, broadcaster):
    pin = create_pin(stranger, "/v1/e/pin", json={"identifier": CLIENT_ID})
    broadcaster.delete("pin")

    answers = [access.post("link/pin"), access.post("validate_pin", json={"pin": pin})]

    assert (401, "Unauthorized") == refused(unlinked, jwt=pair["jwt"])
    assert [(401, "auth.ended_link")] * 2 == [(each.status_code, each.headers["x-emulator-code"]) for each in answers]
    assert not broadcaster.get("pin_token_exists").json()["exists"]


def test_after_delete_pin_an_issued_token_makes_nothing_in_a_new_link_either(live, unlinked, pair, access, broadcaster):
    broadcaster.delete("pin")
    authenticate(unlinked, pin=request_pin(live))

    assert (401, "Unauthorized") == refused(unlinked, jwt=pair["jwt"])
    assert 401 == access.post("link/pin").status_code
    assert 200 == access.get("user_info").status_code


def test_a_pin_and_a_login_of_an_issued_token_end_with_its_link(live, unlinked, pair, access, broadcaster):
    pin, second = create_pin(access), authenticate(unlinked, jwt=pair["jwt"])
    before = linked_channel(live, pin)

    broadcaster.delete("pin")

    assert CHANNEL == before
    assert [(400, "Bad Request")] * 2 == [refused(unlinked, pin=pin), refused(unlinked, refresh=second["refresh"])]


def _tokens(pair: dict[str, Any]) -> tuple[str, str]:
    return pair["jwt"], pair["refresh"]
