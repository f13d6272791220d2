"""The tokens of a PIN: invalid, valid, expired and revoked (PIN and tokens, Credentials; rulings T2, T3, A5, X4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from emulator.clock import DAY, MINUTE, SECOND
from support.pins import create_pin, linked_channel, token_exists, validate
from support.service import (
    CHANNEL,
    CLIENT_ID,
    OTHER_ID,
    Client,
    LiveServer,
    in_production,
    live_server,
    real_seconds,
)
from support.socket_client import SocketClient, linked_game, request_pin

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
def test_delete_pin_revokes_the_pin_tokens_of_the_channel(pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)

    broadcaster.delete("pin")

    assert 401 == pin_token.status()
    assert "revoked" in pin_token.client.get("user_info").json()["info"]
    assert [400, 401, False] == [validate(broadcaster, pin_token.pin), pin_token.status(), token_exists(broadcaster)]


@pytest.mark.ruling("T2")
def test_a_pin_token_may_call_what_a_broadcaster_may_and_revoke_itself(pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)

    assert [*[200] * (len(CALLS) - 2), 400, 200] == pin_token.statuses()
    assert 401 == pin_token.status()


@pytest.mark.ruling("T2", "T3")
def test_a_validated_pin_links_games_until_it_is_five_minutes_old(live, pin_token, broadcaster):
    live.advance(4 * MINUTE)
    validate(broadcaster, pin_token.pin)
    linked = linked_channel(live, pin_token.pin)

    live.advance(MINUTE)

    assert (CHANNEL, 400, 200) == (linked, validate(broadcaster, pin_token.pin), pin_token.status())


@pytest.mark.ruling("T2")
def test_delete_pin_spares_pins_that_are_not_bound_to_a_channel(live, pin_token, broadcaster):
    broadcaster.delete("pin")

    assert [200, 200] == [validate(broadcaster, pin_token.pin), pin_token.status()]


@pytest.mark.ruling("T2")
def test_a_channel_has_a_token_once_a_game_is_linked_and_until_delete_pin(live, broadcaster):
    pin, found = create_pin(broadcaster), [token_exists(broadcaster)]
    for _ in range(2):
        linked_channel(live, pin)
        found.append(token_exists(broadcaster))
        broadcaster.delete("pin")
        found.append(token_exists(broadcaster))
        pin = create_pin(broadcaster)

    assert [False, True, False, True, False] == found


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


def test_expired_pins_are_not_listed_by_the_clock(live, broadcaster, stranger):
    live.freeze()
    pins = [create_pin(broadcaster), create_pin(stranger, "/v1/e/pin", json={"identifier": CLIENT_ID})]
    validate(broadcaster, pins[1])

    expired = live.advance(5 * MINUTE)

    assert [] == [each for each in pins if each in str(expired)]


@pytest.mark.slow
@pytest.mark.ruling("T3")
def test_a_pin_and_its_tokens_survive_a_restart(tmp_path):
    settings = in_production(data=f"sqlite:///{tmp_path}/kept.db")
    exp = real_seconds() + 10 * MINUTE // SECOND
    with live_server(settings) as live:
        client = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=exp)
        pin = create_pin(client)
        with SocketClient(live) as game:
            pair = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})

    with live_server(settings) as live, SocketClient(live) as game:
        by_pin = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})
        by_refresh_token = game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": pair["refresh"]})
        status = live.bearer(pair["jwt"]).get("user_info").status_code

    assert (CHANNEL, CHANNEL, 200) == (by_pin["twitch_id"], by_refresh_token["twitch_id"], status)


@pytest.mark.ruling("T2")
def test_delete_pin_does_not_affect_other_channels_and_client_ids(live, broadcaster):
    neighbor = live.client("broadcaster", user="888", channel="888")
    other = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID)
    pins = [create_pin(client) for client in (neighbor, other)]
    games = [linked_game(live, "888"), linked_game(live, CHANNEL, OTHER_ID)]

    broadcaster.delete("pin")

    assert ["888", CHANNEL] == [linked_channel(live, pins[0]), linked_channel(live, pins[1], OTHER_ID)]
    assert [True, True] == [token_exists(client) for client in (neighbor, other)]
    for each in games:
        each.socket.close()
