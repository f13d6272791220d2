"""`unauthed/validate_pin`: whether the PIN behind a token was validated, without a credential (ruling T5)."""

from __future__ import annotations

import httpx
import pytest

from support.pins import create_pin, validate
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, Client, LiveServer, real_seconds

PATH = "/v1/e/unauthed/validate_pin"


class PinToken:
    """A token of `POST pin` and its PIN."""

    def __init__(self, live: LiveServer) -> None:
        self._client = Client(base_url=live.url)
        issued = self._client.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
        self.token, self.pin = str(issued["token"]), str(issued["pin"])

    def check(self, identifier: str = CLIENT_ID, **body: object) -> httpx.Response:
        return self._client.post(PATH, json={"identifier": identifier, "jwt": self.token, **body})


@pytest.fixture
def pin_token(live: LiveServer) -> PinToken:
    return PinToken(live)


@pytest.mark.ruling("T5")
def test_the_token_of_another_client_id_gets_401(production):
    pin_token = PinToken(production)
    validate(production.client("broadcaster", channel=CHANNEL, exp=real_seconds() + 600), pin_token.pin)

    assert [401, 401] == [pin_token.check(name).status_code for name in (OTHER_ID, "unregistered")]


@pytest.mark.ruling("T5")
def test_any_other_token_gets_401(pin_token, broadcaster):
    others = ["", "x", "a.b.c", broadcaster.headers["Authorization"].split()[1]]

    assert [400, 401, 401, 401] == [pin_token.check(jwt=each).status_code for each in others]


@pytest.mark.ruling("T5")
def test_a_refusal_says_what_to_do(pin_token, stranger, broadcaster):
    unvalidated = pin_token.check()
    by_pin = stranger.post(PATH, json={"identifier": CLIENT_ID, "pin": create_pin(broadcaster)})

    assert (401, True) == (unvalidated.status_code, "validate its PIN" in unvalidated.json()["info"])
    assert (400, True) == (by_pin.status_code, "a pin is not accepted" in by_pin.json()["info"])
