"""The connection limit: games count per client id once they have authenticated, pages count together."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus

from emulator.core.config.settings import Limits, Settings
from support.authentication import authenticate
from support.pusher_client import PusherClient
from support.service import CLIENT_ID, OTHER_ID, LiveServer, live_server
from support.socket_client import Json, SocketClient, linked_game, request_pin


@pytest.fixture
def two() -> Iterator[LiveServer]:
    """A service that allows two connections per client id."""
    with live_server(Settings(limits=Limits(sockets=2))) as live:
        yield live


def login_error(live: LiveServer, client_id: str = CLIENT_ID) -> Json:
    """Return the error of a game that authenticates while its client id is at the limit."""
    with SocketClient(live) as game:
        pin = request_pin(live, client_id=client_id)
        return game.error("authenticate", data={"client_id": client_id, "pin": pin})


def test_to_authenticate_over_the_limit_gets_429(two: LiveServer):
    with linked_game(two), linked_game(two):
        error = login_error(two)

    assert (429, "Too Many Requests") == (error["status"], error["title"])
    assert f"2 connections with client id {CLIENT_ID} are open; the limit is 2" == error["detail"]


def test_client_ids_have_separate_limits(two: LiveServer):
    with linked_game(two), linked_game(two), linked_game(two, client_id=OTHER_ID), linked_game(two, client_id=OTHER_ID):
        assert 429 == login_error(two)["status"] == login_error(two, OTHER_ID)["status"]


def test_a_page_over_the_limit_gets_429_with_retry_after(two: LiveServer):
    with PusherClient(two), PusherClient(two, path="/app/another"), pytest.raises(InvalidStatus) as error:
        PusherClient(two)

    response = error.value.response
    assert (429, "10") == (response.status_code, response.headers["Retry-After"])
    assert "2 connections of pages are open; the limit is 2" == json.loads(response.body)["info"]


def test_games_and_pages_have_separate_limits(two: LiveServer):
    with PusherClient(two, path=f"/app/{CLIENT_ID}"), PusherClient(two), linked_game(two), linked_game(two):
        assert 429 == login_error(two)["status"]


def test_a_closed_connection_no_longer_counts(two: LiveServer):
    with linked_game(two) as first, linked_game(two):
        first.socket.close()
        with linked_game(two) as third:
            assert "errors" not in third.request("subscribe", "authentication")


def test_a_second_login_of_a_connection_counts_once(two: LiveServer):
    with linked_game(two) as game:
        authenticate(game, pin=request_pin(two))
        with linked_game(two):
            authenticate(game, OTHER_ID, pin=request_pin(two, client_id=OTHER_ID))
            with linked_game(two):
                assert 429 == login_error(two)["status"]


def test_authenticate_for_a_client_id_at_its_limit_changes_nothing(two: LiveServer):
    pin = request_pin(two, "777", OTHER_ID)
    with linked_game(two, client_id=OTHER_ID), linked_game(two, client_id=OTHER_ID), linked_game(two) as game:
        error = game.error("authenticate", data={"client_id": OTHER_ID, "pin": pin})
        state = game.request("get", "state", {"state_id": "channel"})

    assert (429, "Too Many Requests") == (error["status"], error["title"])
    assert "errors" not in state
