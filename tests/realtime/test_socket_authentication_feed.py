"""Updates of the topic `authentication`: linked, refreshed and revoked games (Events 1; rulings X3, X7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.service import CHANNEL, CLIENT_ID, LiveServer, real_seconds
from support.socket_client import SocketClient, linked_game, request_pin


def subscribe(game: SocketClient) -> None:
    assert {"ok": True} == game.data("subscribe", "authentication")


def event(name: str, channel: str = CHANNEL) -> dict[str, str]:
    return {"topic_id": "authentication", "event": name, "twitch_id": channel}


def authenticate(game: SocketClient, client_id: str = CLIENT_ID, **credential: str) -> dict[str, Any]:
    return game.data("authenticate", data={"client_id": client_id, **credential})


@pytest.fixture
def subscribed(live: LiveServer) -> Iterator[SocketClient]:
    """A game of channel 777 that is subscribed to `authentication`."""
    with linked_game(live) as game:
        subscribe(game)
        yield game


@pytest.mark.parametrize("path", ["link/pin", "pin"])
def test_an_unlinked_game_receives_the_validation_of_a_pin(unlinked, broadcaster, stranger, path):
    subscribe(unlinked)
    pin = stranger.post(f"/v1/e/{path}", json={"identifier": CLIENT_ID}).json()["pin"]

    broadcaster.post("validate_pin", json={"pin": pin}).raise_for_status()

    assert event("authenticated") == unlinked.update()["data"]


def test_in_production_an_unlinked_game_does_not_learn_the_channel(production):
    owner = production.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=real_seconds() + 600)
    with linked_game(production, exp=real_seconds() + 600) as linked, SocketClient(production) as unlinked:
        for game in (linked, unlinked):
            subscribe(game)
        pin = owner.post("pin", json={"identifier": CLIENT_ID}).json()["pin"]

        owner.post("validate_pin", json={"pin": pin}).raise_for_status()

        assert event("authenticated") == linked.update()["data"]
        assert {"topic_id": "authentication", "event": "authenticated"} == unlinked.update()["data"]


def test_an_unlinked_game_receives_no_other_authentications(live, unlinked, broadcaster):
    subscribe(unlinked)

    linked_game(live, "888").socket.close()
    broadcaster.delete("pin").raise_for_status()

    authenticate(unlinked, pin=request_pin(live))
    assert event("authenticated") == unlinked.update()["data"]
    assert unlinked.no_update()


def test_a_subscription_follows_the_connection_to_another_channel(live, subscribed, broadcaster):
    authenticate(subscribed, pin=request_pin(live, "888"))
    assert event("authenticated", "888") == subscribed.update()["data"]

    broadcaster.delete("pin").raise_for_status()

    assert subscribed.no_update()
