"""Updates of the topic `authentication`: linked, refreshed and revoked games (Events 1; rulings X3, X7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.service import CHANNEL, CLIENT_ID, OTHER_ID, LiveServer, real_seconds
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


def test_an_unlinked_game_receives_only_its_own_client_id(live, unlinked, stranger):
    subscribe(unlinked)
    of_another = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID)
    pin = stranger.post("/v1/e/pin", json={"identifier": OTHER_ID}).json()["pin"]

    of_another.post("validate_pin", json={"pin": pin}).raise_for_status()

    authenticate(unlinked, pin=request_pin(live))
    assert event("authenticated") == unlinked.update()["data"]  # its own, and none before
    assert unlinked.no_update()


def test_an_unlinked_game_receives_no_other_authentications(live, unlinked, broadcaster):
    subscribe(unlinked)

    linked_game(live, "888").socket.close()
    broadcaster.delete("pin").raise_for_status()

    authenticate(unlinked, pin=request_pin(live))
    assert event("authenticated") == unlinked.update()["data"]
    assert unlinked.no_update()


def test_a_subscription_before_authentication_continues_with_the_channel(live, unlinked, broadcaster):
    subscribe(unlinked)
    authenticate(unlinked, pin=request_pin(live))

    broadcaster.delete("pin").raise_for_status()

    assert [event("authenticated"), event("revoked")] == [unlinked.update()["data"] for _ in range(2)]


def test_a_subscription_follows_the_connection_to_another_channel(live, subscribed, broadcaster):
    authenticate(subscribed, pin=request_pin(live, "888"))
    assert event("authenticated", "888") == subscribed.update()["data"]

    broadcaster.delete("pin").raise_for_status()

    assert subscribed.no_update()


def test_other_channels_and_client_ids_receive_nothing(live, subscribed):
    linked_game(live, "888").socket.close()
    linked_game(live, CHANNEL, OTHER_ID).socket.close()

    assert subscribed.no_update()


def test_a_failed_attempt_is_not_reported(live, subscribed):
    with SocketClient(live) as game:
        game.error("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})

    assert subscribed.no_update()


def test_unsubscribing_ends_the_updates(subscribed, broadcaster):
    subscribed.data("unsubscribe", "authentication")

    broadcaster.delete("pin").raise_for_status()

    assert subscribed.no_update()


def test_no_update_contains_a_token_or_a_pin(live, subscribed, broadcaster):
    pin = request_pin(live)
    with SocketClient(live) as game:
        pair = authenticate(game, pin=pin)
        pair = {**authenticate(game, refresh=pair["refresh"]), "first": pair["jwt"], "older": pair["refresh"]}
    broadcaster.post("validate_pin", json={"pin": pin})
    broadcaster.delete("pin")

    updates = [subscribed.update()["data"] for _ in range(4)]

    assert ["authenticated", "refreshed", "authenticated", "revoked"] == [each["event"] for each in updates]
    assert [{"topic_id", "event", "twitch_id"}] * 4 == [each.keys() for each in updates]
    secrets = [pin, *(pair[name] for name in ("jwt", "refresh", "first", "older"))]
    assert [] == [secret for secret in secrets if secret in str(updates)]
