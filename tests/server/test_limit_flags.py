"""The limits of `extcli serve`. `test_serve_variables.py` sets each option by its variable."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import pytest
from websockets.exceptions import InvalidStatus

from support.authentication import status_of_pin
from support.process import ServerProcess, server_process
from support.pusher_client import PusherClient
from support.service import CLIENT_ID, Client
from support.socket_client import SocketClient

SOCKETS = {"--max-sockets": "1", "--max-subscriptions": "1"}
RATES = {"--caller-rate": "1", "--client-rate": "3"}


def with_flags(flags: dict[str, str]) -> AbstractContextManager[ServerProcess]:
    return server_process(*(word for flag in flags.items() for word in flag))


def test_limits_of_ids_sockets_and_subscriptions():
    flags = {"--max-ids": "1", **SOCKETS}
    with with_flags(flags) as served:
        viewer = served.client("viewer", user="1", channel="777")
        polls = [viewer.post("vote", params={"id": name}, json={"value": 1}).status_code for name in "ab"]
        token = served.client("broadcaster", user="777", channel="777").headers["Authorization"].split()[1]
        with SocketClient(served) as game:
            game.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
            game.data("subscribe", "state", {"topic_id": "channel"})
            second = game.error("subscribe", "config", {"config_id": "channel"})["detail"]
            with SocketClient(served) as another:
                refused = another.error("authenticate", data={"client_id": CLIENT_ID, "jwt": token})

    assert [200, 400] == polls
    assert "the connection would have 2 subscriptions; the limit is 1" == second
    assert 429 == refused["status"]


def test_limits_of_callers_and_client_ids():
    with with_flags(RATES) as served:
        callers = [served.client("viewer", user=str(user), channel="777") for user in range(10)]
        allowed = [[caller.get("vote").status_code for _ in range(20)].count(200) for caller in callers]

    # Bursts of 5 and 15 requests, and as many more as the machine's time allows.
    assert 5 <= allowed[0] < 20
    assert 15 <= sum(allowed) < 100


ANONYMOUS = {
    "--address-pins": "1",
    "--address-sockets": "1",
    "--max-unauthenticated": "1",
    "--login-timeout": "60",
    "--address-connections": "50",
    "--address-pages": "1",
    "--address-kib": "1",
}


def test_limits_of_callers_without_a_token():
    flags = ANONYMOUS | {"--proxy": "127.0.0.1"}
    with with_flags(flags) as served:
        with Client(base_url=served.url) as client:
            pins = [client.post("/v1/e/pin", json={"identifier": CLIENT_ID}).status_code for _ in range(2)]
        with SocketClient(served) as game, PusherClient(served):
            refused = [_status(partial(connect, served)) for connect in (SocketClient, PusherClient)]
            with SocketClient(served, additional_headers={"X-Forwarded-For": "203.0.113.1"}) as newer:
                replaced = game.close_code()
                served.advance(60_000)
                late = newer.close_code()
        with SocketClient(served) as game:
            game.socket.send("x" * 2_000)
            too_much = game.close_code()

    assert [200, 429] == pins
    assert [429, 429] == refused
    assert [1008] * 3 == [replaced, late, too_much]


def _status(connect: Callable[[], object]) -> int:
    with pytest.raises(InvalidStatus) as refused:
        connect()
    return refused.value.response.status_code


@pytest.mark.parametrize(
    ("flags", "allowed"), [({"--address-pin-attempts": "2"}, 2), ({"--client-pin-attempts": "3"}, 3 + 5)]
)
def test_limits_of_wrong_pins(flags: dict[str, str], allowed: int):
    with with_flags(flags) as served:
        assert [*[400] * allowed, 429] == [status_of_pin(served, "ZZZZZZ") for _ in range(allowed + 1)]
