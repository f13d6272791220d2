"""Sandbox tokens: what `authtoken` takes and what it issues (Authentication 3; rulings A1, A5)."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import jwt
import pytest

from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.service import CLIENT_ID, SECRET, Client, LiveServer, live_server

MINUTE = 60


def ask(client: Client, **body: Any) -> httpx.Response:
    return client.post("/v1/e/authtoken", json=body)


def claims_of(token: str) -> dict[str, Any]:
    """Read the payload as the published SDK does: with plain base64."""
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.b64decode(payload + "=" * (-len(payload) % 4), validate=True))
    return claims


def issued(client: Client, **body: Any) -> dict[str, Any]:
    return claims_of(ask(client, **body).json()["token"])


def test_the_published_sdk_is_given_a_token_for_the_user_it_names(stranger: Client):
    answer = stranger.post(
        "/v1/e/authtoken?role=broadcaster",
        content=b'{"app_id":"my-ext-id","channel_id":"23161357","role":"viewer","user_id":"5551"}',
        headers={"Content-Type": "application/json"},
    )

    claims = claims_of(answer.json()["token"])
    assert (200, "application/json", ["token"]) == (
        answer.status_code,
        answer.headers["content-type"],
        list(answer.json()),
    )
    assert ("my-ext-id", "23161357", "5551", "viewer") == (
        claims["extension_id"],
        claims["channel_id"],
        claims["user_id"],
        claims["role"],
    )


def test_a_token_is_issued_without_any_content_type(stranger: Client):
    assert (
        "backend"
        == claims_of(stranger.post("/v1/e/authtoken", content=b'{"app_id":"x","role":"backend"}').json()["token"])[
            "role"
        ]
    )


@pytest.mark.ruling("A5")
def test_an_issued_token_carries_who_when_and_for_which_stage(live: LiveServer, stranger: Client):
    now = live.freeze() // 1000

    claims = issued(stranger, extension_id=CLIENT_ID, channel_id="777", user_id="5551", role="viewer")

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


def test_no_two_issued_tokens_are_the_same(stranger: Client):
    tokens = {ask(stranger, app_id="x", user_id="1").json()["token"] for _ in range(20)}

    assert 20 == len(tokens)


def test_an_issued_token_is_signed_hs256(stranger: Client):
    token = ask(stranger, app_id="x", user_id="1").json()["token"]

    assert {"alg": "HS256", "typ": "JWT"} == jwt.get_unverified_header(token)


def test_an_issued_token_opens_the_service_for_thirty_minutes(live: LiveServer, stranger: Client):
    live.freeze()
    client = live.bearer(ask(stranger, app_id=CLIENT_ID, user_id="1").json()["token"])

    live.advance(30 * 60_000 - 1_000)
    before = client.get("user_info").status_code
    live.advance(1_000)

    assert (200, 401) == (before, client.get("user_info").status_code)


def test_several_users_are_given_one_token_each_in_order(stranger: Client):
    answer = ask(stranger, app_id="x", channel_id="7", user_ids=["1", "2", "3"], role="viewer").json()

    assert ["tokens"] == list(answer)
    assert ["1", "2", "3"] == [claims_of(token)["user_id"] for token in answer["tokens"]]


def test_user_ids_may_be_combined_with_user_id(stranger: Client):
    answer = ask(stranger, app_id="x", user_id="9", user_ids=["1", "2"]).json()

    assert ["9", "1", "2"] == [claims_of(token)["user_id"] for token in answer["tokens"]]


@pytest.mark.parametrize("user_ids", [["1"], "1", 1])
def test_a_single_one_of_user_ids_is_given_a_token(stranger: Client, user_ids: object):
    answer = ask(stranger, app_id="x", user_ids=user_ids).json()

    assert ["1"] == [claims_of(token)["user_id"] for token in answer["tokens"]]


@pytest.mark.parametrize("named", [{}, {"user_ids": []}, {"user_id": ""}, {"user_id": None}])
def test_without_a_user_the_token_is_an_anonymous_viewers(stranger: Client, named: dict[str, Any]):
    claims = issued(stranger, app_id="x", channel_id="7", **named)

    assert claims["opaque_user_id"].startswith("A")
    assert "user_id" not in claims


def test_anonymous_viewers_are_different_users(live: LiveServer, stranger: Client):
    for _ in range(3):
        token = ask(stranger, app_id=CLIENT_ID, channel_id="7").json()["token"]
        poll = live.bearer(token).post("vote", json={"value": 1}).json()

    assert 3 == poll["count"]


@pytest.mark.ruling("A1")
def test_a_refresh_without_an_app_id_is_given_a_token_that_the_header_names_the_extension_for(
    live: LiveServer, stranger: Client
):
    token = ask(stranger, channel_id="7", role="viewer", user_id="8").json()["token"]

    record = live.bearer(token, client_id="any-ext").get("user_info").json()

    assert ("any-ext", "7", "8") == (record["extension_id"], record["channel_id"], record["user_id"])
    assert "extension_id" not in claims_of(token)


def test_ids_may_be_numbers(stranger: Client):
    claims = issued(stranger, app_id=42, channel_id=777, user_id=5551)

    assert ("42", "777", "5551") == (claims["extension_id"], claims["channel_id"], claims["user_id"])
    assert ["1", "2"] == [
        claims_of(token)["user_id"] for token in ask(stranger, app_id="x", user_ids=[1, 2]).json()["tokens"]
    ]


def test_a_broadcasters_user_id_is_replaced_by_the_channel(stranger: Client):
    claims = issued(stranger, app_id="x", channel_id="777", user_id="5551", role="broadcaster")

    assert ("777", "U777") == (claims["user_id"], claims["opaque_user_id"])


def test_a_broadcaster_without_a_channel_keeps_their_user_id(live: LiveServer, stranger: Client):
    token = ask(stranger, app_id="x", user_id="5551", role="broadcaster").json()["token"]

    assert "5551" == live.bearer(token).get("user_info").json()["channel_id"]


@pytest.mark.parametrize("role", ["viewer", "broadcaster", "admin", "backend", "moderator", "ä b"])
def test_the_role_is_taken_as_it_is(stranger: Client, role: str):
    assert role == issued(stranger, app_id="x", channel_id="7", role=role)["role"]


def test_without_a_role_the_token_is_a_viewers(stranger: Client):
    assert "viewer" == issued(stranger, app_id="x")["role"]


@pytest.mark.parametrize(
    "text",
    ["".join(map(chr, range(32, 127))), "?>~" * 20, "~", "???>>>~~~\x7e", "ÿÿÿÿ", "日本語", "🎲🎲", 'q"uote\\', "-_-_"],
)
@pytest.mark.ruling("A5")
def test_the_payload_of_an_issued_token_never_has_a_dash_or_an_underscore(stranger: Client, text: str):
    for padding in ("", "a", "ab"):
        token = ask(stranger, app_id=padding + text, channel_id=text, user_id=text + padding, role=text).json()["token"]

        assert not {"-", "_"} & set(token.split(".")[1])
        assert (padding + text, text) == (claims_of(token)["extension_id"], claims_of(token)["role"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"app_id":["x"]}',
        b'{"user_id":1.5}',
        b'{"user_id":true}',
        b'{"user_ids":{"a":1}}',
        b'{"user_ids":["1",null]}',
        b'{"role":5}',
        b'{"channel_id":"a\\nb"}',
        b'{"user_id":"\\u0000"}',
    ],
)
def test_a_body_that_names_nobody_readably_is_refused(stranger: Client, body: bytes):
    assert 400 == stranger.post("/v1/e/authtoken", content=body).status_code


@pytest.mark.ruling("A1")
def test_with_the_switch_only_registered_extensions_are_given_tokens():
    settings = Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}, registered_only=True)
    with live_server(settings) as live, Client(base_url=live.url) as client:
        known = ask(client, extension_id=CLIENT_ID, user_id="1")
        unknown = ask(client, app_id="stranger", user_id="1")
        refresh = ask(client, user_id="1")

    assert (200, 400, 200) == (known.status_code, unknown.status_code, refresh.status_code)
    assert "No such extension found" == unknown.json()["reason"]
