"""PINs over REST: request and validation (PIN and tokens, Credentials; rulings T1, T2)."""

from __future__ import annotations

import logging

import pytest

from support.pins import create_pin, linked_channel, validate
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
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
