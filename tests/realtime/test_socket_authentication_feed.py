"""The topic `authentication`: who hears that a game was linked, renewed or revoked (Events 1; rulings X3, X7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.service import CHANNEL, CLIENT_ID, OTHER_ID, LiveServer
from support.socket_client import NO_REQUEST, SocketClient, linked_game, request_pin


def follow(game: SocketClient) -> None:
    assert {"ok": True} == game.data("subscribe", "authentication")


def event(name: str, channel: str = CHANNEL) -> dict[str, str]:
    return {"topic_id": "authentication", "event": name, "twitch_id": channel}


def authenticate(game: SocketClient, client_id: str = CLIENT_ID, **credential: str) -> dict[str, Any]:
    return game.data("authenticate", data={"client_id": client_id, **credential})


@pytest.fixture
def watching(live: LiveServer) -> Iterator[SocketClient]:
    """A game of channel 777 that follows `authentication`."""
    with linked_game(live) as game:
        follow(game)
        yield game


@pytest.mark.ruling("X7")
def test_the_reply_is_ok_and_there_is_no_update_on_subscribing(game):
    follow(game)

    assert game.no_update()


@pytest.mark.ruling("X7")
def test_a_game_hears_that_another_of_its_channel_was_linked(live, watching):
    live.set(2_000_000_000_000)

    linked_game(live).socket.close()

    meta = {"request_id": NO_REQUEST, "action": "update", "target": "authentication", "timestamp": 2_000_000_000_000}
    assert {"meta": meta, "data": event("authenticated")} == watching.update()
    assert watching.no_update()


@pytest.mark.ruling("X7")
def test_a_refresh_is_told_as_refreshed(live, watching):
    pair = authenticate(watching, pin=request_pin(live))
    authenticate(watching, refresh=pair["refresh"])

    assert [event("authenticated"), event("refreshed")] == [watching.update()["data"] for _ in range(2)]


@pytest.mark.ruling("X7")
def test_a_revocation_is_told_as_revoked(watching, broadcaster):
    broadcaster.delete("pin").raise_for_status()

    assert event("revoked") == watching.update()["data"]
    assert watching.no_update()


@pytest.mark.ruling("X7")
@pytest.mark.parametrize("path", ["link/pin", "pin"])
def test_who_waits_for_a_pin_hears_that_a_broadcaster_validated_it(unlinked, broadcaster, stranger, path):
    follow(unlinked)
    pin = stranger.post(f"/v1/e/{path}", json={"identifier": CLIENT_ID}).json()["pin"]

    broadcaster.post("validate_pin", json={"pin": pin}).raise_for_status()

    assert event("authenticated") == unlinked.update()["data"]


@pytest.mark.ruling("X7")
def test_who_waits_hears_of_validations_of_their_own_client_id_only(live, unlinked, stranger):
    follow(unlinked)
    of_another = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, client_id=OTHER_ID)
    pin = stranger.post("/v1/e/pin", json={"identifier": OTHER_ID}).json()["pin"]

    of_another.post("validate_pin", json={"pin": pin}).raise_for_status()

    authenticate(unlinked, pin=request_pin(live))
    assert event("authenticated") == unlinked.update()["data"]  # its own, and none before it
    assert unlinked.no_update()


@pytest.mark.ruling("X7")
def test_who_waits_does_not_hear_of_others_who_authenticate_or_of_revocations(live, unlinked, broadcaster):
    follow(unlinked)

    linked_game(live, "888").socket.close()
    broadcaster.delete("pin").raise_for_status()

    authenticate(unlinked, pin=request_pin(live))
    assert event("authenticated") == unlinked.update()["data"]
    assert unlinked.no_update()


@pytest.mark.ruling("X7")
def test_a_subscription_from_before_authentication_goes_on_with_the_channel(live, unlinked, broadcaster):
    follow(unlinked)
    authenticate(unlinked, pin=request_pin(live))

    broadcaster.delete("pin").raise_for_status()

    assert [event("authenticated"), event("revoked")] == [unlinked.update()["data"] for _ in range(2)]


@pytest.mark.ruling("X7")
def test_a_subscription_moves_with_the_connection_to_another_channel(live, watching, broadcaster):
    authenticate(watching, pin=request_pin(live, "888"))
    assert event("authenticated", "888") == watching.update()["data"]

    broadcaster.delete("pin").raise_for_status()

    assert watching.no_update()


@pytest.mark.ruling("X7")
def test_other_channels_and_other_client_ids_hear_nothing(live, watching):
    linked_game(live, "888").socket.close()
    linked_game(live, CHANNEL, OTHER_ID).socket.close()

    assert watching.no_update()


@pytest.mark.ruling("X7")
def test_a_failed_attempt_is_told_to_nobody(live, watching):
    with SocketClient(live) as game:
        game.error("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})

    assert watching.no_update()


@pytest.mark.ruling("X7")
def test_unsubscribing_ends_it(watching, broadcaster):
    watching.data("unsubscribe", "authentication")

    broadcaster.delete("pin").raise_for_status()

    assert watching.no_update()


@pytest.mark.ruling("X7")
def test_no_update_ever_holds_a_token_or_a_pin(live, watching, broadcaster):
    pin = request_pin(live)
    with SocketClient(live) as game:
        pair = authenticate(game, pin=pin)
        pair = {**authenticate(game, refresh=pair["refresh"]), "first": pair["jwt"], "older": pair["refresh"]}
    broadcaster.post("validate_pin", json={"pin": pin})
    broadcaster.delete("pin")

    updates = [watching.update()["data"] for _ in range(4)]

    assert ["authenticated", "refreshed", "authenticated", "revoked"] == [each["event"] for each in updates]
    assert [{"topic_id", "event", "twitch_id"}] * 4 == [each.keys() for each in updates]
    secrets = [pin, *(pair[name] for name in ("jwt", "refresh", "first", "older"))]
    assert [] == [secret for secret in secrets if secret in str(updates)]
