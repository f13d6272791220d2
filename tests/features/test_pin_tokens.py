"""The tokens behind a PIN: dead, alive, expired and revoked (PIN and tokens, Credentials; rulings T2, T3, A5, X4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from emulator.clock import DAY, MINUTE, SECOND
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, Client, LiveServer
from support.socket_client import SocketClient, request_pin

YEAR = 365 * DAY
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
"""Calls of several kinds; the last but one is answered with 400, because the PIN is wrong."""


class Issued:
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


def validate(client: Client, pin: str) -> int:
    return client.post("validate_pin", json={"pin": pin}).status_code


def claims(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


@pytest.fixture
def issued(live: LiveServer) -> Issued:
    live.freeze()
    return Issued(live)


@pytest.fixture
def pair(live: LiveServer) -> Iterator[dict[str, Any]]:
    """What a game is answered that authenticates with a PIN of channel 777, while the clock stands."""
    live.freeze()
    with SocketClient(live) as game:
        yield game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})


@pytest.mark.ruling("T2")
def test_the_token_of_a_pin_is_dead_in_every_call_until_the_pin_is_validated(issued):
    assert [401] * len(CALLS) == issued.statuses()


@pytest.mark.ruling("T2")
def test_a_dead_token_says_what_it_waits_for(issued):
    answer = issued.client.get("user_info").json()

    assert "validate its PIN" in answer["info"]


@pytest.mark.ruling("T2", "X4")
def test_the_token_of_a_pin_is_dead_on_the_socket_until_the_pin_is_validated(unlinked, issued, broadcaster):
    by_jwt = {"client_id": CLIENT_ID, "jwt": issued.token}
    before = unlinked.error("authenticate", data=by_jwt)["status"]

    validate(broadcaster, issued.pin)

    assert (401, CHANNEL) == (before, unlinked.data("authenticate", data=by_jwt)["twitch_id"])


@pytest.mark.ruling("T2")
def test_the_token_is_alive_in_every_call_the_instant_after_the_pin_is_validated(issued, broadcaster):
    before = issued.status()

    validate(broadcaster, issued.pin)

    assert 401 == before
    assert [*[200] * (len(CALLS) - 2), 400, 200] == issued.statuses()


@pytest.mark.ruling("T2")
def test_the_token_acts_as_the_broadcaster_who_validated_its_pin(issued, broadcaster):
    validate(broadcaster, issued.pin)

    record = issued.client.get("user_info").json()

    assert ("broadcaster", CHANNEL, CHANNEL) == (record["role"], record["channel_id"], record["user_id"])


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("wrong", ["ZZZZZZ", "", "another's"])
def test_a_wrong_pin_brings_no_token_to_life(live, issued, broadcaster, wrong):
    assert 400 == validate(broadcaster, Issued(live, OTHER_ID).pin if wrong == "another's" else wrong)
    assert 401 == issued.status()


@pytest.mark.ruling("T2")
def test_a_pin_brings_only_its_own_token_to_life(live, issued, broadcaster):
    another = Issued(live)

    validate(broadcaster, issued.pin)

    assert [200, 401] == [issued.status(), another.status()]


@pytest.mark.ruling("T2")
def test_a_token_whose_pin_has_expired_stays_dead(live, issued, broadcaster):
    live.advance(5 * MINUTE)

    assert 400 == validate(broadcaster, issued.pin)
    assert 401 == issued.status()


@pytest.mark.ruling("T2")
def test_a_token_outlives_the_pin_that_brought_it_to_life(live, issued, broadcaster):
    validate(broadcaster, issued.pin)

    live.advance(5 * MINUTE)

    assert 200 == issued.status()


@pytest.mark.ruling("T2", "T3")
def test_the_socket_takes_the_pin_of_a_token_too(unlinked, issued, broadcaster):
    validate(broadcaster, issued.pin)

    answer = unlinked.data("authenticate", data={"client_id": CLIENT_ID, "pin": issued.pin})

    assert CHANNEL == answer["twitch_id"]


@pytest.mark.ruling("T2")
def test_the_token_of_a_pin_ends_seven_days_after_it_was_issued(live, broadcaster):
    live.set(2_000_000_000_000)
    issued = Issued(live)
    live.advance(4 * MINUTE)
    validate(broadcaster, issued.pin)

    live.advance(7 * DAY - 4 * MINUTE - 1)
    before = issued.status()
    live.advance(1)

    assert [200, 401] == [before, issued.status()]


@pytest.mark.ruling("T2")
def test_delete_pin_revokes_the_channel_s_pin_tokens(issued, broadcaster):
    validate(broadcaster, issued.pin)

    broadcaster.delete("pin")

    assert 401 == issued.status()
    assert "revoked" in issued.client.get("user_info").json()["info"]


@pytest.mark.ruling("T2")
def test_delete_pin_leaves_the_pin_tokens_of_other_channels_and_client_ids_alone(live, issued, broadcaster):
    of_another = Issued(live, OTHER_ID)
    validate(live.client("broadcaster", user="888", channel="888"), issued.pin)
    validate(live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID), of_another.pin)

    broadcaster.delete("pin")

    assert [200, 200] == [issued.status(), of_another.status()]


@pytest.mark.ruling("T2")
def test_a_pin_token_that_is_alive_may_revoke_itself(issued, broadcaster):
    validate(broadcaster, issued.pin)

    assert [200, 401] == [issued.client.delete("pin").status_code, issued.status()]


@pytest.mark.ruling("A5", "X4")
def test_an_access_token_says_who_it_is_for_and_lives_seven_days(live, pair):
    said = claims(pair["jwt"])

    assert {
        "role": "broadcaster",
        "channel_id": CHANNEL,
        "user_id": CHANNEL,
        "opaque_user_id": f"U{CHANNEL}",
        "extension_id": CLIENT_ID,
        "allowed_stage": "sandbox",
        "iat": live.now() // SECOND,
        "exp": live.now() // SECOND + 7 * DAY // SECOND,
        "jti": said["jti"],
    } == said


@pytest.mark.ruling("A5")
def test_a_refresh_token_lives_365_days(live, pair):
    said = claims(pair["refresh"])

    assert (live.now() // SECOND, YEAR // SECOND) == (said["iat"], said["exp"] - said["iat"])


@pytest.mark.ruling("A5")
def test_the_token_of_a_pin_says_what_it_is_to_be_and_lives_seven_days(live, issued):
    said = claims(issued.token)

    assert ("broadcaster", CLIENT_ID, "sandbox") == (said["role"], said["extension_id"], said["allowed_stage"])
    assert (live.now() // SECOND, 7 * DAY // SECOND) == (said["iat"], said["exp"] - said["iat"])


@pytest.mark.ruling("A5")
def test_no_two_issued_tokens_have_one_jti(live, pair, issued):
    tokens = [pair["jwt"], pair["refresh"], issued.token, Issued(live).token]

    assert 4 == len({claims(token)["jti"] for token in tokens})


@pytest.mark.ruling("A5")
@pytest.mark.parametrize("name", ["my-extension", "a>b?c~d", "ab>c?d~", "abc>>??~~", "_-_-", "/+/+>>"])
@pytest.mark.parametrize("channel", ["777", ">?~", "x>?~", "xx>?~", "\xff\xfe>", "\u65e5?", "\U0001f600~", "\x7f"])
def test_the_payload_of_an_issued_token_has_neither_minus_nor_underscore(live, name, channel):
    issued = Issued(live, name)
    with SocketClient(live) as game:
        pair = game.data("authenticate", data={"client_id": name, "pin": request_pin(live, channel, name)})

    tokens = [issued.token, pair["jwt"], pair["refresh"]]

    assert [] == [token for token in tokens if re.search("[-_]", token.split(".")[1])]
    assert [name] * 3 == [claims(token)["extension_id"] for token in tokens]
    assert channel == claims(pair["jwt"])["channel_id"] == pair["twitch_id"]


@pytest.mark.ruling("T3")
def test_an_access_token_is_good_until_one_millisecond_before_seven_days_and_dead_at_seven(live):
    live.set(2_000_000_000_000)
    with SocketClient(live) as game:
        token = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})["jwt"]
    client = live.bearer(token)

    live.advance(7 * DAY - 1)
    before = client.get("user_info").status_code
    live.advance(1)

    assert [200, 401] == [before, client.get("user_info").status_code]


def test_an_access_token_is_not_revoked_by_delete_pin(live, pair, broadcaster):
    broadcaster.delete("pin")

    assert 200 == live.bearer(pair["jwt"]).get("user_info").status_code


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_a_refresh_token_is_refused_over_rest(live, pair, method, path, body):
    assert 401 == live.bearer(pair["refresh"]).request(method, path, json=body).status_code


def test_a_refresh_token_is_refused_over_rest_in_production_too(production):
    token = production.service.tokens.issue(YEAR, use="refresh", extension_id=CLIENT_ID, channel_id=CHANNEL, link="x")

    assert 401 == production.bearer(token).get("user_info").status_code


@pytest.mark.ruling("T2")
def test_a_revoked_pin_token_stays_dead(issued, broadcaster):
    validate(broadcaster, issued.pin)
    broadcaster.delete("pin")

    validate(broadcaster, issued.pin)

    assert 401 == issued.status()
