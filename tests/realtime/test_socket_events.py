"""Broadcasts over the socket: subscribers and whispers (Events; rulings B3, X5, X8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.authentication import authenticated_game
from support.service import LiveServer
from support.socket_client import SocketClient


@pytest.fixture
def anonymous_game(live: LiveServer) -> Iterator[SocketClient]:
    """A viewer of channel 777 who has not shared their identity."""
    with authenticated_game(live, "viewer", opaque="Axyz") as game:
        yield game


def send(game: SocketClient, topic: str = "news", data: object = None, **members: Any) -> dict[str, Any]:
    return game.data("broadcast", data={"topic": topic, "data": {"a": 1} if data is None else data, **members})


def received(game: SocketClient, number: int) -> list[str]:
    """The events of the next updates, after checking that there are no more."""
    seen = [game.update()["data"]["event"] for _ in range(number)]
    assert game.no_update()
    return seen


@pytest.mark.parametrize("event", ["state", "config", "poll", "channel", "authentication", "broadcast", "match", "*x"])
def test_the_target_broadcast_subscribes_to_events_with_reserved_names(game, event):
    game.data("subscribe", "broadcast", {"topic_id": event})

    send(game, event)

    assert [event] == received(game, 1)


def test_a_whisper_to_several_users_reaches_each_once(live, game, viewer_game, anonymous_game):
    for each in (viewer_game, anonymous_game):
        each.data("subscribe", "news")

    send(game, ids=["123", "Axyz", "123", "unknown"])

    assert [["news"], ["news"]] == [received(each, 1) for each in (viewer_game, anonymous_game)]


def test_a_whisper_without_users_reaches_no_one(game, viewer_game):
    viewer_game.data("subscribe", "news")

    send(game, ids=[])

    assert [] == received(viewer_game, 0)


def test_the_older_form_with_a_message_is_accepted(game, viewer_game):
    viewer_game.data("subscribe", "news")

    game.data("broadcast", data={"topic": "news", "message": "hello"})

    assert "hello" == viewer_game.update()["data"]["data"]


def test_event_names_are_case_sensitive(game):
    game.data("subscribe", "News")

    send(game, "news")

    assert [] == received(game, 0)


def test_neither_votes_nor_state_are_events(live, game, broadcaster):
    game.data("subscribe", "*")

    broadcaster.post("channel_state", json={"a": 1})
    broadcaster.post("vote", json={"value": 1})
    live.advance(1_000)

    assert [] == received(game, 0)
