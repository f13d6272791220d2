"""Sandbox tokens from `authtoken` (Authentication 3; rulings A1, A5)."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import jwt
import pytest

from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.service import CLIENT_ID, SECRET, Client, LiveServer, live_server, real_seconds

MINUTE = 60


def authtoken(client: Client, **body: Any) -> httpx.Response:
    return client.post("/v1/e/authtoken", json=body)


def claims_of(token: str) -> dict[str, Any]:
    """Read the payload with plain base64, as the published SDK does."""
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.b64decode(payload + "=" * (-len(payload) % 4), validate=True))
    return claims


def issued_claims(client: Client, **body: Any) -> dict[str, Any]:
    return claims_of(authtoken(client, **body).json()["token"])


def test_the_published_sdk_gets_a_token_for_the_user_it_names(stranger: Client):
    answer = stranger.post(
        "/v1/e/authtoken?role=broadcaster",
        content=b'{"app_id":"my-ext-id","channel_id":"23161357","role":"viewer","user_id":"5551"}',
        headers={"Content-Type": "application/json"},
    )

    claims = claims_of(answer.json()["token"])
    assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])
    assert ["token"] == list(answer.json())
    expected = {"extension_id": "my-ext-id", "channel_id": "23161357", "user_id": "5551", "role": "viewer"}
    assert expected.items() <= claims.items()


def test_a_token_contains_identity_times_extension_and_stage(live: LiveServer, stranger: Client):
    now = live.freeze() // 1000

    token = authtoken(stranger, extension_id=CLIENT_ID, channel_id="777", user_id="5551", role="viewer").json()["token"]
    claims = claims_of(token)

    assert {"alg": "HS256", "typ": "JWT"} == jwt.get_unverified_header(token)

    assert claims.pop("jti").isalnum()
    assert {
        "exp": now + 30 * MINUTE,
        "iat": now,
        "role": "viewer",
        "channel_id": "777",
        "user_id": "5551",
        "opaque_user_id": "U5551",
        "extension_id": CLIENT_ID,
        "allowed_stage": "sandbox",
    } == claims


def test_a_token_for_a_helper_stays_valid_when_the_clock_moves(live: LiveServer, stranger: Client):
    token = stranger.post("/v1/e/authtoken?helper=1", json={"app_id": CLIENT_ID, "user_id": "1"}).json()["token"]
    claims, client = claims_of(token), live.bearer(token)

    live.advance(8 * 86_400_000)

    assert 200 == client.get("user_info").status_code
    assert ("sandbox", True, 30 * MINUTE) == (claims["allowed_stage"], claims["helper"], claims["exp"] - claims["iat"])


def test_a_page_may_read_the_exp_of_its_token_by_its_own_clock(live: LiveServer, stranger: Client):
    live.set(live.service.clock.now() - 8 * 86_400_000)
    token = stranger.post("/v1/e/authtoken?helper=1", json={"app_id": CLIENT_ID, "user_id": "1"}).json()["token"]

    assert claims_of(token)["exp"] >= real_seconds() + 29 * MINUTE


@pytest.mark.parametrize(
    ("named", "ids"),
    [
        ({"user_ids": ["1", "2", "3"]}, ["1", "2", "3"]),
        ({"user_ids": ["1", "2"], "user_id": "9"}, ["9", "1", "2"]),
        ({"user_ids": 1}, ["1"]),
        ({"user_ids": "1"}, ["1"]),
        ({"user_ids": [1, 2]}, ["1", "2"]),
    ],
)
def test_each_of_user_ids_gets_a_token_in_order(stranger: Client, named: dict[str, Any], ids: list[str]):
    answer = authtoken(stranger, app_id="x", channel_id="7", role="viewer", **named).json()

    assert (["tokens"] if len(ids) > 1 else ["token", "tokens"]) == list(answer)
    assert ids == [claims_of(token)["user_id"] for token in answer["tokens"]]


@pytest.mark.parametrize("named", [{}, {"user_ids": []}, {"user_id": ""}, {"user_id": None}])
def test_without_a_user_the_token_is_for_an_anonymous_viewer(stranger: Client, named: dict[str, Any]):
    claims = issued_claims(stranger, app_id="x", channel_id="7", **named)

    assert ("viewer", True) == (claims["role"], claims["opaque_user_id"].startswith("A"))
    assert "user_id" not in claims


@pytest.mark.parametrize(
    ("named", "user_id"), [({}, None), ({"user_id": "5551"}, "5551"), ({"user_ids": ["5551"]}, "5551")]
)
def test_a_user_may_have_an_opaque_id_with_and_without_a_shared_one(stranger: Client, named, user_id: str | None):
    claims = issued_claims(stranger, app_id="x", channel_id="7", opaque_user_id="Uabc", **named)

    assert ("Uabc", user_id) == (claims["opaque_user_id"], claims.get("user_id"))


@pytest.mark.parametrize("body", [{"opaque_user_id": "5551"}, {"opaque_user_id": "Uabc", "user_ids": ["1", "2"]}])
def test_an_opaque_id_starts_with_u_or_a_and_names_one_user(stranger: Client, body: dict[str, Any]):
    answer = authtoken(stranger, app_id="x", **body)

    assert (400, True) == (answer.status_code, answer.json()["info"].startswith("opaque_user_id: "))


def test_anonymous_viewers_are_different_users(live: LiveServer, stranger: Client):
    for _ in range(3):
        token = authtoken(stranger, app_id=CLIENT_ID, channel_id="7").json()["token"]
        poll = live.bearer(token).post("vote", json={"value": 1}).json()

    assert 3 == poll["count"]


def test_without_an_extension_id_the_token_works_for_the_client_id_in_the_header(live: LiveServer, stranger: Client):
    token = authtoken(stranger, channel_id="7", role="viewer", user_id="8").json()["token"]

    record = live.bearer(token, client_id="any-ext").get("user_info").json()

    assert ("any-ext", "7", "8") == (record["extension_id"], record["channel_id"], record["user_id"])
    assert "extension_id" not in claims_of(token)


def test_the_user_id_of_a_broadcaster_is_their_channel(stranger: Client):
    claims = issued_claims(stranger, app_id="x", channel_id="777", user_id="5551", role="broadcaster")

    assert ("777", "U777") == (claims["user_id"], claims["opaque_user_id"])


@pytest.mark.parametrize(
    "text",
    ["".join(map(chr, range(32, 127))), "?>~" * 20, "~", "???>>>~~~\x7e", "ÿÿÿÿ", "日本語", "🎲🎲", 'q"uote\\', "-_-_"],
)
def test_the_payload_of_a_token_contains_no_dash_and_no_underscore(stranger: Client, text: str):
    for padding in ("", "a", "ab"):
        token = authtoken(stranger, app_id=padding + text, channel_id=text, user_id=text + padding, role=text).json()[
            "token"
        ]

        assert not {"-", "_"} & set(token.split(".")[1])
        assert (padding + text, text) == (claims_of(token)["extension_id"], claims_of(token)["role"])


@pytest.mark.parametrize(
    "body",
    [b'{"user_ids":{"a":1}}', b'{"user_ids":["1",null]}', b'{"user_ids":[[]]}', b'{"user_id":"\\u0000"}'],
)
def test_a_malformed_id_is_refused(stranger: Client, body: bytes):
    assert 400 == stranger.post("/v1/e/authtoken", content=body).status_code


def test_with_registered_only_unregistered_extensions_get_no_tokens():
    settings = Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}, registered_only=True)
    with live_server(settings) as live, Client(base_url=live.url) as client:
        known = authtoken(client, extension_id=CLIENT_ID, user_id="1")
        unknown = authtoken(client, app_id="unregistered", user_id="1")
        refresh = authtoken(client, user_id="1")

    assert (200, 400, 200) == (known.status_code, unknown.status_code, refresh.status_code)
    assert "No such extension found" == unknown.json()["reason"]
