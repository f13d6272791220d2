"""PINs over REST: request and validation (PIN and tokens, Credentials; rulings T1, T2)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from support.pins import create_pin, linked_channel, validate
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient, request_pin

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ2346789"


@pytest.fixture
def named(live: LiveServer) -> Iterator[Client]:
    """A client whose Authorization header contains only the client id."""
    with Client(base_url=f"{live.url}/v1/e/", headers={"Authorization": CLIENT_ID}) as client:
        yield client


@pytest.mark.slow
@pytest.mark.ruling("T1")
def test_a_pin_has_six_unambiguous_characters(broadcaster):
    pins = [create_pin(broadcaster) for _ in range(200)]

    assert [] == [each for each in pins if not re.fullmatch("[A-HJ-KMNP-Z2-46-9]{6}", each)]
    assert set(ALPHABET) == set("".join(pins))


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("body", [b"", b" ", b"{}", b'"{}"', b'{"identifier":"my-extension"}', b'{"x":1}', b"not json"])
def test_with_the_client_id_in_the_header_the_body_is_ignored(named, body):
    assert 200 == named.post("link/pin", content=body).status_code


@pytest.mark.ruling("T2", "W2")
@pytest.mark.parametrize("path", ["link/pin", "pin"])
@pytest.mark.parametrize("body", [b'{"identifier":"my-extension"}', rb'"{\"identifier\":\"my-extension\"}"'])
def test_the_client_id_may_be_in_the_body_without_a_header(stranger, path, body):
    assert 200 == stranger.post(f"/v1/e/{path}", content=body).status_code


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("role", ["admin", "backend"])
@pytest.mark.parametrize("channel", [None, CHANNEL])
def test_the_pin_of_an_admin_or_backend_is_bound_to_the_channel_that_the_call_names(live, broadcaster, role, channel):
    pin = create_pin(live.client(role, channel=channel), "link/pin?channel_id=888")

    assert (400, "888") == (validate(broadcaster, pin), linked_channel(live, pin))


@pytest.mark.ruling("T2")
@pytest.mark.parametrize(("role", "channel"), [("viewer", CHANNEL), ("admin", None), ("backend", None)])
def test_the_pin_of_a_viewer_and_one_without_a_channel_are_unbound(live, role, channel):
    pin = create_pin(live.client(role, user="5", channel=channel))

    assert 200 == validate(live.client("broadcaster", user="888", channel="888"), pin)
    assert "888" == linked_channel(live, pin)


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("path", ["link/pin", "pin"])
def test_a_client_id_with_a_space_gets_no_pin(stranger, path):
    assert 400 == stranger.post(f"/v1/e/{path}", json={"identifier": "a b"}).status_code


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("pin", ["", "x" * 1_000])
def test_a_text_of_another_length_is_a_wrong_pin(broadcaster, pin):
    assert 400 == validate(broadcaster, pin)


@pytest.mark.ruling("T2")
@pytest.mark.parametrize("path", ["link/pin", "pin"])
def test_in_production_only_registered_client_ids_get_pins(production, path):
    with Client(base_url=f"{production.url}/v1/e/") as client:
        statuses = [client.post(path, json={"identifier": name}).status_code for name in (CLIENT_ID, "nobody")]
        by_header = [
            client.post("link/pin", headers={"Authorization": name}).status_code for name in (CLIENT_ID, "nobody")
        ]

    assert [200, 401, 200, 401] == [*statuses, *by_header]


def test_the_log_contains_no_pins_and_no_tokens(live, broadcaster, caplog):
    caplog.set_level(logging.DEBUG)
    pin = request_pin(live)
    with SocketClient(live) as game:
        pair = game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})
        game.error("authenticate", data={"client_id": CLIENT_ID, "pin": f"{pin}x"})
        game.data("authenticate", data={"client_id": CLIENT_ID, "refresh": pair["refresh"]})
    validate(broadcaster, pin)
    validate(broadcaster, f"{pin}x")

    lines = [r.getMessage() for r in caplog.records if r.name.split(".")[0] in ("emulator", "uvicorn", "litestar")]

    assert [] == [line for line in lines for secret in (pin, *pair.values()) if len(secret) > 5 and secret in line]


@pytest.mark.parametrize("quoted", ["%s", '"%s"'])
def test_a_token_without_a_client_id_is_not_taken_for_one(live: LiveServer, stranger: Client, quoted: str):
    token = live.client("viewer").headers["Authorization"].split()[1]

    answer = stranger.post("/v1/e/link/pin", headers={"Authorization": quoted % token})

    assert (401, "malformed Authorization header: '<client id> <JWT>' is expected") == (
        answer.status_code,
        answer.json()["info"],
    )
