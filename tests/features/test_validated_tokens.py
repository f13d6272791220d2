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
def test_a_token_gets_401_until_its_pin_is_validated(pin_token, broadcaster):
    before = pin_token.check()
    validate(broadcaster, pin_token.pin)
    after = pin_token.check()

    assert (401, True) == (before.status_code, "validate its PIN" in before.json()["info"])
    assert (200, {}) == (after.status_code, after.json())


@pytest.mark.ruling("T5")
def test_in_production_a_token_gets_401_until_its_pin_is_validated(production):
    pin_token = PinToken(production)
    owner = production.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600)

    before = pin_token.check().status_code
    validate(owner, pin_token.pin)

    assert [401, 200] == [before, pin_token.check().status_code]


@pytest.mark.ruling("T5")
def test_a_validated_pin_says_nothing_of_another_token(live, pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)

    assert 401 == PinToken(live).check().status_code


@pytest.mark.ruling("T5")
def test_a_revoked_token_gets_401(pin_token, broadcaster):
    validate(broadcaster, pin_token.pin)
    broadcaster.delete("pin")

    assert 401 == pin_token.check().status_code


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
def test_the_older_form_with_a_pin_gets_400_and_says_so(stranger, broadcaster):
    right, wrong = create_pin(broadcaster), "ZZZZZZ"

    answers = [stranger.post(PATH, json={"identifier": CLIENT_ID, "pin": pin}) for pin in (right, wrong)]

    assert [400, 400] == [answer.status_code for answer in answers]
    assert 1 == len({answer.json()["info"] for answer in answers})
    assert "a pin is not accepted" in answers[0].json()["info"]
