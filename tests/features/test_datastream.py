"""The datastream: games receive the JSON that pages of their channel post, in order."""

from __future__ import annotations

import json

import pytest

from support.service import LiveServer
from support.socket_client import SocketClient, linked_game


@pytest.mark.parametrize("event", [{"click": 1}, [1, 2], 7, "text", None])
def test_games_receive_a_posted_event_unchanged(live: LiveServer, game: SocketClient, viewer, event: object):
    live.freeze()
    game.data("subscribe", "datastream", {"topic_id": ""})

    answer = viewer().post("datastream", content=json.dumps(event))

    assert (200, {}) == (answer.status_code, answer.json())
    update = game.update()
    assert "datastream" == update["meta"]["target"]
    assert {"events": [{"event": event, "timestamp": live.now() // 1000}]} == update["data"]


def test_events_arrive_in_order(game: SocketClient, viewer):
    game.data("subscribe", "datastream", {"topic_id": ""})
    client = viewer()

    for number in range(20):
        client.post("datastream", json=number)

    assert list(range(20)) == [game.update()["data"]["events"][0]["event"] for _ in range(20)]


def test_games_of_other_channels_and_extensions_receive_nothing(live: LiveServer, viewer):
    with linked_game(live, "888") as elsewhere, linked_game(live, client_id="other-extension") as other:
        for each in (elsewhere, other):
            each.data("subscribe", "datastream", {"topic_id": ""})

        viewer().post("datastream", json={})

        assert [True, True] == [each.no_update() for each in (elsewhere, other)]


def test_a_game_receives_nothing_after_it_unsubscribes(game: SocketClient, viewer):
    game.data("subscribe", "datastream", {"topic_id": ""})
    game.data("unsubscribe", "datastream", {"topic_id": ""})

    viewer().post("datastream", json={})

    assert game.no_update()
