"""The tokens of a PIN: invalid, valid, expired and revoked (PIN and tokens, Credentials; rulings T2, T3, A5, X4)."""

from __future__ import annotations

import pytest

from support.pins import validate
from support.service import (
    CHANNEL,
    CLIENT_ID,
    OTHER_ID,
    Client,
    LiveServer,
)

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


@pytest.fixture
def pin_token(live: LiveServer) -> PinToken:
    live.freeze()
    return PinToken(live)


def test_a_pin_token_may_call_what_a_broadcaster_may_once_validated_and_revoke_itself(pin_token, broadcaster):
    assert [401] * len(CALLS) == pin_token.statuses()

    validate(broadcaster, pin_token.pin)

    assert [*[200] * (len(CALLS) - 2), 400, 200] == pin_token.statuses()
    assert [401, 400] == [pin_token.status(), validate(broadcaster, pin_token.pin)]


def test_on_the_socket_a_pin_token_is_invalid_until_its_pin_is_validated(unlinked, pin_token, broadcaster):
    by_jwt = {"client_id": CLIENT_ID, "jwt": pin_token.token}
    before = unlinked.error("authenticate", data=by_jwt)["status"]

    validate(broadcaster, pin_token.pin)

    assert (401, CHANNEL) == (before, unlinked.data("authenticate", data=by_jwt)["twitch_id"])


def test_the_token_of_another_client_id_is_not_confirmed(live, pin_token, broadcaster, stranger):
    validate(broadcaster, pin_token.pin)
    own = broadcaster.headers["Authorization"].split()[1]

    statuses = [
        stranger.post("/v1/e/unauthed/validate_pin", json={"identifier": name, "jwt": jwt}).status_code
        for name, jwt in ((CLIENT_ID, pin_token.token), (OTHER_ID, pin_token.token), (CLIENT_ID, own), (CLIENT_ID, "x"))
    ]

    assert [200, 401, 401, 401] == statuses
