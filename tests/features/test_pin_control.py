"""`POST /_emulator/pins/expire`: one PIN expires without the clock (operations, Controlling)."""

from __future__ import annotations

import pytest

from support.pins import create_pin, validate
from support.service import CLIENT_ID, Client, LiveServer


def expire(client: Client, **body: str) -> int:
    return client.post("/_emulator/pins/expire", json={"client_id": CLIENT_ID, **body}).status_code


def test_an_expired_pin_is_refused_and_others_stay(live: LiveServer, broadcaster: Client, stranger: Client):
    expired, other = create_pin(broadcaster), create_pin(broadcaster)
    now = live.freeze()

    assert 200 == expire(stranger, pin=expired)

    assert [400, 200] == [validate(broadcaster, each) for each in (expired, other)]
    assert now == live.now()


def test_a_pin_is_named_by_the_digest_of_the_list_of_contents(live: LiveServer, broadcaster: Client, stranger: Client):
    pin = create_pin(broadcaster)
    (row,) = stranger.get("/_emulator/contents/pins").json()["rows"]

    assert [404, 404] == [expire(stranger, digest=each) for each in (row["id"][:15], row["id"][1:])]
    assert 200 == expire(stranger, digest=row["id"])
    assert 400 == validate(broadcaster, pin)


def test_a_link_outlives_its_expired_pin(broadcaster: Client, stranger: Client):
    issued = stranger.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
    assert 200 == validate(broadcaster, issued["pin"])

    assert 200 == expire(stranger, pin=issued["pin"])
    check = {"identifier": CLIENT_ID, "jwt": issued["token"]}
    assert 200 == stranger.post("/v1/e/unauthed/validate_pin", json=check).status_code


def test_a_pin_that_is_not_live_is_refused_without_its_text(stranger: Client):
    wrong = stranger.post("/_emulator/pins/expire", json={"client_id": CLIENT_ID, "pin": "QQ22QQ"})

    assert 400 == wrong.status_code
    assert "QQ22QQ" not in wrong.text
    assert 404 == expire(stranger, digest="00")


def test_a_pin_of_another_client_id_is_not_expired(broadcaster: Client, stranger: Client):
    pin = create_pin(broadcaster)
    (row,) = stranger.get("/_emulator/contents/pins").json()["rows"]

    assert 400 == expire(stranger, pin=pin, client_id="another")
    assert 404 == expire(stranger, digest=row["id"], client_id="another")
    assert 200 == validate(broadcaster, pin)


@pytest.mark.parametrize("body", [{}, {"pin": "QQ22QQ", "digest": "00"}])
def test_exactly_one_of_pin_and_digest_is_given(stranger: Client, body: dict[str, str]):
    refused = stranger.post("/_emulator/pins/expire", json={"client_id": CLIENT_ID, **body})

    assert (400, True) == (refused.status_code, refused.json()["info"].startswith("pin, digest: "))
