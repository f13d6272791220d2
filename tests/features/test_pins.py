"""PINs and their tokens over REST: request, validation, expiry, and what a token may make (T1, T2, T3, A5, X4)."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from emulator.core.clock import DAY, SECOND
from support.authentication import authenticate, refused
from support.pins import create_pin, linked_channel, validate
from support.service import CHANNEL, CLIENT_ID, OTHER_ID, Client, LiveServer
from support.socket_client import SocketClient, request_pin


@pytest.mark.parametrize("body", [b" ", b'"{}"', b'{"identifier":"my-extension"}', b'{"x":1}', b"not json"])
def test_with_the_client_id_in_the_header_the_body_is_ignored(stranger, body):
    assert 200 == stranger.post("/v1/e/link/pin", content=body, headers={"Authorization": CLIENT_ID}).status_code


@pytest.mark.parametrize(
    ("role", "channel", "query", "status"),
    [
        ("admin", CHANNEL, "?channel_id=888", 400),
        ("backend", None, "?channel_id=888", 400),
        ("backend", None, "", 200),
        ("viewer", CHANNEL, "", 200),
    ],
)
def test_the_pin_of_a_server_is_bound_to_the_channel_that_it_names(live, broadcaster, role, channel, query, status):
    pin = create_pin(live.client(role, user="5", channel=channel), f"link/pin{query}")

    assert (status, CHANNEL if status == 200 else "888") == (validate(broadcaster, pin), linked_channel(live, pin))


@pytest.mark.parametrize("path", ["link/pin", "pin"])
def test_in_production_only_registered_client_ids_get_pins(production, path):
    with Client(base_url=f"{production.url}/v1/e/") as client:
        statuses = [client.post(path, json={"identifier": name}).status_code for name in (CLIENT_ID, "nobody")]
        by_header = [
            client.post("link/pin", headers={"Authorization": name}).status_code for name in (CLIENT_ID, "nobody")
        ]

    assert [200, 401, 200, 401] == [*statuses, *by_header]


@pytest.mark.parametrize("quoted", ["%s", '"%s"'])
def test_a_token_without_a_client_id_is_not_taken_for_one(live: LiveServer, stranger: Client, quoted: str):
    token = live.client("viewer").headers["Authorization"].split()[1]

    answer = stranger.post("/v1/e/link/pin", headers={"Authorization": quoted % token})

    assert (401, "malformed Authorization header: '<client id> <JWT>' is expected") == (
        answer.status_code,
        answer.json()["info"],
    )


def test_the_token_of_a_pin_is_of_its_client_id_and_opens_the_socket_once_validated(
    live: LiveServer, unlinked: SocketClient, stranger: Client, broadcaster: Client
):
    issued = stranger.post("/v1/e/pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
    by_jwt = {"client_id": CLIENT_ID, "jwt": issued["token"]}
    before = unlinked.error("authenticate", data=by_jwt)["status"]

    validate(broadcaster, issued["pin"])

    assert (401, CHANNEL) == (before, unlinked.data("authenticate", data=by_jwt)["twitch_id"])
    own = broadcaster.headers["Authorization"].split()[1]
    statuses = [
        stranger.post("/v1/e/unauthed/validate_pin", json={"identifier": name, "jwt": jwt}).status_code
        for name, jwt in ((CLIENT_ID, issued["token"]), (OTHER_ID, issued["token"]), (CLIENT_ID, own), (CLIENT_ID, "x"))
    ]
    assert [200, 401, 401, 401] == statuses


# Expiry by the control API


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


# What an issued token may make


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
