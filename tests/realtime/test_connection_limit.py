"""The connection limit per client id."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus

from emulator.config.settings import Limits, Settings
from support.pusher_client import PusherClient
from support.service import CLIENT_ID, OTHER_ID, LiveServer, live_server
from support.socket_client import SocketClient, linked_game, request_pin

NO_CLIENT_ID, OURS, OTHERS = "/ws", f"/0.2.0/{CLIENT_ID}", f"/0.2.0/{OTHER_ID}"


@pytest.fixture
def two() -> Iterator[LiveServer]:
    """A service that allows two connections per client id."""
    with live_server(Settings(limits=Limits(sockets=2))) as live:
        yield live


def rejected(live: LiveServer, path: str) -> InvalidStatus:
    with pytest.raises(InvalidStatus) as error:
        SocketClient(live, path)
    return error.value


def test_a_connection_over_the_limit_is_429_with_retry_after(two: LiveServer):
    with SocketClient(two, OURS), SocketClient(two, OURS):
        response = rejected(two, OURS).response

    assert (429, "10") == (response.status_code, response.headers["Retry-After"])
    assert f"2 connections with client id {CLIENT_ID} are open, limit 2" == json.loads(response.body)["info"]


def test_client_ids_have_separate_limits_as_have_paths_without_one(two: LiveServer):
    with (
        SocketClient(two, OURS),
        SocketClient(two, OURS),
        SocketClient(two, OTHERS),
        SocketClient(two, NO_CLIENT_ID),
        SocketClient(two, NO_CLIENT_ID),
    ):
        assert 429 == rejected(two, NO_CLIENT_ID).response.status_code


def test_games_and_pages_share_the_limit_of_their_client_id(two: LiveServer):
    with SocketClient(two, OURS), PusherClient(two, path=f"/app/{CLIENT_ID}"):
        assert 429 == rejected(two, OURS).response.status_code


def test_a_closed_connection_no_longer_counts(two: LiveServer):
    with SocketClient(two, OURS) as first, SocketClient(two, OURS):
        first.socket.close()
        with SocketClient(two, OURS) as third:
            assert "error" not in third.request("subscribe", "authentication")


def test_a_connection_counts_toward_the_client_id_it_authenticates_with(two: LiveServer):
    pin = request_pin(two, "777")
    with SocketClient(two, NO_CLIENT_ID) as first, SocketClient(two, NO_CLIENT_ID) as second:
        for game in (first, second):
            game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})

        with SocketClient(two, NO_CLIENT_ID), SocketClient(two, NO_CLIENT_ID):
            assert 429 == rejected(two, OURS).response.status_code


def test_authenticate_for_a_client_id_at_its_limit_changes_nothing(two: LiveServer):
    pin = request_pin(two, "777", OTHER_ID)
    with SocketClient(two, OTHERS), SocketClient(two, OTHERS), linked_game(two) as game:
        error = game.error("authenticate", data={"client_id": OTHER_ID, "pin": pin})
        state = game.request("get", "state", {"state_id": "channel"})

    assert (429, "Too Many Requests") == (error["status"], error["title"])
    assert "errors" not in state


def test_a_rejected_connection_does_not_count(two: LiveServer):
    with SocketClient(two, OURS):
        with SocketClient(two, OURS):
            for _ in range(3):
                rejected(two, OURS)
        with SocketClient(two, OURS):
            assert 429 == rejected(two, OURS).response.status_code
