"""The tokens of a PIN: invalid, valid, expired and revoked (PIN and tokens, Credentials; rulings T2, T3, A5, X4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from emulator.clock import DAY, MINUTE, SECOND
from support.pins import validate
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, Client, LiveServer
from support.socket_client import SocketClient, request_pin

CALLS = [
    ("GET", "user_info", None),
    ("GET", "vote", None),
    ("POST", "vote", {"value": 1}),
    ("DELETE", "vote", None),
    ("POST", "rank", {"key": "blue"}),
    ("POST", "accumulate", {"a": 1}),
    ("GET", "channel_state", None),
    ("PATCH", "channel_state", {"a": 1}),
    ("POST", "link/pin", None),
    ("GET", "pin_token_exists", None),
    ("POST", "validate_pin", {"pin": "ABCDEF"}),
    ("DELETE", "pin", None),
]
"""Calls of several kinds. With a valid token all return 200, except that the last but one has a wrong PIN."""


class PinToken:
    """A token of `POST pin` and its PIN."""

    def __init__(self, live: LiveServer, client_id: str = CLIENT_ID) -> None:
        with Client(base_url=live.url) as client:
            answer = client.post("/v1/e/pin", json={"identifier": client_id}).raise_for_status().json()
        self.token, self.pin = str(answer["token"]), str(answer["pin"])
        self.client = live.bearer(self.token, client_id=client_id)

    def statuses(self) -> list[int]:
        return [self.client.request(method, path, json=body).status_code for method, path, body in CALLS]

    def status(self) -> int:
        return self.client.get("user_info").status_code


def claims_of(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


@pytest.fixture
def pin_token(live: LiveServer) -> PinToken:
    live.freeze()
    return PinToken(live)


@pytest.fixture
def pair(live: LiveServer) -> Iterator[dict[str, Any]]:
    """The tokens of a game that authenticated with a PIN of channel 777, while the clock is frozen."""
    live.freeze()
    with SocketClient(live) as game:
        yield game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})


@pytest.mark.ruling("T2")
def test_a_pin_token_is_invalid_until_its_pin_is_validated(pin_token):
    assert [401] * len(CALLS) == pin_token.statuses()


@pytest.mark.ruling("T2")
def test_the_error_for_an_invalid_pin_token_says_how_to_validate_it(pin_token):
    answer = pin_token.client.get("user_info").json()

    assert "validate its PIN" in answer["info"]


@pytest.mark.ruling("T2", "X4")
def test_on_the_socket_a_pin_token_is_invalid_until_its_pin_is_validated(unlinked, pin_token, broadcaster):
    by_jwt = {"client_id": CLIENT_ID, "jwt": pin_token.token}
    before = unlinked.error("authenticate", data=by_jwt)["status"]

    validate(broadcaster, pin_token.pin)

    assert (401, CHANNEL) == (before, unlinked.data("authenticate", data=by_jwt)["twitch_id"])


@pytest.mark.ruling("T2")
def test_a_pin_token_is_valid_as_soon_as_its_pin_is_validated(pin_token, broadcaster):
    before = pin_token.status()

    validate(broadcaster, pin_token.pin)

    assert 401 == before
    assert [*[200] * (len(CALLS) - 2), 400, 200] == pin_token.statuses()


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("wrong", ["ZZZZZZ", "", "x" * 1_000, "another's"])
def test_a_wrong_pin_validates_no_token(live, pin_token, broadcaster, wrong):
    assert 400 == validate(broadcaster, PinToken(live, OTHER_ID).pin if wrong == "another's" else wrong)
    assert 401 == pin_token.status()


@pytest.mark.ruling("T2")
def test_a_token_whose_pin_has_expired_stays_invalid(live, pin_token, broadcaster):
    live.advance(5 * MINUTE)

    assert 400 == validate(broadcaster, pin_token.pin)
    assert 401 == pin_token.status()


@pytest.mark.ruling("T2")
def test_a_validated_token_outlives_its_pin(live, pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)

    live.advance(5 * MINUTE)

    assert 200 == pin_token.status()


@pytest.mark.ruling("T2", "T3")
def test_a_game_may_authenticate_with_the_pin_of_a_token(unlinked, pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)

    answer = unlinked.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin_token.pin})

    assert CHANNEL == answer["twitch_id"]


@pytest.mark.ruling("T2")
def test_a_pin_token_expires_seven_days_after_its_issue(live, broadcaster):
    live.set(2_000_000_000_000)
    pin_token = PinToken(live)
    live.advance(4 * MINUTE)
    validate(broadcaster, pin_token.pin)

    live.advance(7 * DAY - 4 * MINUTE - 1)
    before = pin_token.status()
    live.advance(1)

    assert [200, 401] == [before, pin_token.status()]


@pytest.mark.ruling("T2")
def test_delete_pin_revokes_the_pin_tokens_of_the_channel(pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)

    broadcaster.delete("pin")

    assert 401 == pin_token.status()
    assert "revoked" in pin_token.client.get("user_info").json()["info"]


@pytest.mark.ruling("T2")
def test_delete_pin_does_not_affect_other_channels_and_client_ids(live, pin_token, broadcaster):
    other = PinToken(live, OTHER_ID)
    validate(live.client("broadcaster", user="888", channel="888"), pin_token.pin)
    validate(live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID), other.pin)

    broadcaster.delete("pin")

    assert [200, 200] == [pin_token.status(), other.status()]


@pytest.mark.ruling("T2")
def test_a_valid_pin_token_may_revoke_itself(pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)

    assert [200, 401] == [pin_token.client.delete("pin").status_code, pin_token.status()]


@pytest.mark.ruling("A5", "X4")
def test_an_access_token_names_the_broadcaster_and_lives_seven_days(live, pair):
    payload = claims_of(pair["jwt"])

    assert {
        "role": "broadcaster",
        "channel_id": CHANNEL,
        "user_id": CHANNEL,
        "opaque_user_id": f"U{CHANNEL}",
        "extension_id": CLIENT_ID,
        "link": claims_of(pair["refresh"])["link"],
        "linked_at": live.now(),
        "allowed_stage": "sandbox",
        "iat": live.now() // SECOND,
        "exp": live.now() // SECOND + 7 * DAY // SECOND,
        "jti": payload["jti"],
    } == payload


@pytest.mark.ruling("A5")
def test_a_pin_token_names_its_role_and_extension_and_lives_seven_days(live, pin_token):
    payload = claims_of(pin_token.token)

    assert ("broadcaster", CLIENT_ID, "sandbox") == (payload["role"], payload["extension_id"], payload["allowed_stage"])
    assert (live.now() // SECOND, 7 * DAY // SECOND) == (payload["iat"], payload["exp"] - payload["iat"])


@pytest.mark.ruling("A5")
def test_every_issued_token_has_its_own_jti(live, pair, pin_token):
    tokens = [pair["jwt"], pair["refresh"], pin_token.token, PinToken(live).token]

    assert 4 == len({claims_of(token)["jti"] for token in tokens})


@pytest.mark.ruling("A5")
@pytest.mark.parametrize("name", ["my-extension", "a>b?c~d", "ab>c?d~", "abc>>??~~", "_-_-", "/+/+>>"])
@pytest.mark.parametrize("channel", ["777", ">?~", "x>?~", "xx>?~", "\xff\xfe>", "\u65e5?", "\U0001f600~", "\x7f"])
def test_the_payload_of_an_issued_token_contains_no_dash_and_no_underscore(live, name, channel):
    pin_token = PinToken(live, name)
    with SocketClient(live) as game:
        pair = game.data("authenticate", data={"client_id": name, "pin": request_pin(live, channel, name)})

    tokens = [pin_token.token, pair["jwt"], pair["refresh"]]

    assert [] == [token for token in tokens if re.search("[-_]", token.split(".")[1])]
    assert [name] * 3 == [claims_of(token)["extension_id"] for token in tokens]
    assert channel == claims_of(pair["jwt"])["channel_id"] == pair["twitch_id"]


def test_delete_pin_does_not_revoke_access_tokens(live, pair, broadcaster):
    broadcaster.delete("pin")

    assert 200 == live.bearer(pair["jwt"]).get("user_info").status_code


@pytest.mark.ruling("T2")
def test_a_revoked_pin_token_stays_invalid(pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)
    broadcaster.delete("pin")

    validate(broadcaster, pin_token.pin)

    assert 401 == pin_token.status()
