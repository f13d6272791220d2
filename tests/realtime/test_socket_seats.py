"""How many connections one client id may have."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus

from emulator.config.settings import Limits, Settings
from support.pusher_client import PusherClient
from support.service import CLIENT_ID, OTHER_ID, LiveServer, live_server
from support.socket_client import SocketClient, linked_game, request_pin

OF_NOBODY, OF_OURS, OF_OTHERS = "/ws", f"/0.2.0/{CLIENT_ID}", f"/0.2.0/{OTHER_ID}"


@pytest.fixture
def two() -> Iterator[LiveServer]:
    """A service where a client id has two connections."""
    with live_server(Settings(limits=Limits(sockets=2))) as live:
        yield live


def refusal(live: LiveServer, path: str) -> InvalidStatus:
    with pytest.raises(InvalidStatus) as refused:
        SocketClient(live, path)
    return refused.value


def test_one_connection_too_many_is_refused_with_429_and_when_to_come_back(two: LiveServer):
    with SocketClient(two, OF_OURS), SocketClient(two, OF_OURS):
        response = refusal(two, OF_OURS).response

    assert (429, "10") == (response.status_code, response.headers["Retry-After"])
    assert f"2 connections with client id {CLIENT_ID} are open, limit 2" == json.loads(response.body)["info"]


def test_client_ids_do_not_share_their_connections_nor_with_those_who_name_none(two: LiveServer):
    with (
        SocketClient(two, OF_OURS),
        SocketClient(two, OF_OURS),
        SocketClient(two, OF_OTHERS),
        SocketClient(two, OF_NOBODY),
        SocketClient(two, OF_NOBODY),
    ):
        assert 429 == refusal(two, OF_NOBODY).response.status_code


def test_games_and_pages_share_the_connections_of_their_client_id(two: LiveServer):
    with SocketClient(two, OF_OURS), PusherClient(two, path=f"/app/{CLIENT_ID}"):
        assert 429 == refusal(two, OF_OURS).response.status_code


def test_who_leaves_makes_room(two: LiveServer):
    with SocketClient(two, OF_OURS) as first, SocketClient(two, OF_OURS):
        first.socket.close()
        with SocketClient(two, OF_OURS) as third:
            assert "error" not in third.request("subscribe", "authentication")


def test_the_client_id_of_authenticate_is_the_one_that_counts(two: LiveServer):
    pin = request_pin(two, "777")
    with SocketClient(two, OF_NOBODY) as first, SocketClient(two, OF_NOBODY) as second:
        for game in (first, second):
            game.data("authenticate", data={"client_id": CLIENT_ID, "pin": pin})

        with SocketClient(two, OF_NOBODY), SocketClient(two, OF_NOBODY):
            assert 429 == refusal(two, OF_OURS).response.status_code


def test_who_authenticates_for_a_client_id_without_room_stays_who_it_was(two: LiveServer):
    pin = request_pin(two, "777", OTHER_ID)
    with SocketClient(two, OF_OTHERS), SocketClient(two, OF_OTHERS), linked_game(two) as game:
        error = game.error("authenticate", data={"client_id": OTHER_ID, "pin": pin})
        state = game.request("get", "state", {"state_id": "channel"})

    assert (429, "Too Many Requests") == (error["status"], error["title"])
    assert "errors" not in state


def test_a_refused_connection_takes_no_room(two: LiveServer):
    with SocketClient(two, OF_OURS):
        with SocketClient(two, OF_OURS):
            for _ in range(3):
                refusal(two, OF_OURS)
        with SocketClient(two, OF_OURS):
            assert 429 == refusal(two, OF_OURS).response.status_code
