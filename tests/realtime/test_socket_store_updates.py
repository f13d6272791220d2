"""Updates of state and config over the socket (rulings S6, W1, X2, X4, X5)."""

from __future__ import annotations

import pytest

from realtime.socket_stores import set_state, state, updates
from support.service import CHANNEL, CLIENT_ID, OTHER_ID
from support.socket_client import NO_REQUEST, linked_game, request_pin


def test_a_subscription_may_name_its_target_in_its_data(game):
    game.data("subscribe", "", {"target": "channel"})

    set_state(game, {"a": 1})

    assert [{"topic_id": "channel", "state": {"a": 1}}] == updates(game, 1)
    game.data("unsubscribe", "", {"target": "channel"})
    set_state(game, {"a": 2})
    assert [] == updates(game, 0)


@pytest.mark.parametrize("state_id", ["channel", "extension"])
def test_an_update_has_its_store_as_target(live, admin_game, state_id):
    live.set(2_000_000_000_000)
    admin_game.data("subscribe", "state", {"topic_id": state_id})

    set_state(admin_game, {"a": 1}, state_id)

    meta = {"request_id": NO_REQUEST, "action": "update", "target": state_id, "timestamp": 2_000_000_000_000}
    assert {"meta": meta, "data": {"topic_id": state_id, "state": {"a": 1}}} == admin_game.update()


def test_unsubscribing_ends_one_topic_of_one_connection(game, other, broadcaster):
    for each in (game, other):
        each.data("subscribe", "state", {"topic_id": "channel"})
        each.data("subscribe", "config", {"config_id": "channel"})

    game.data("unsubscribe", "state", {"topic_id": "channel"})

    broadcaster.post("channel_state", json={"a": 1})
    broadcaster.post("channel_config", json={"b": 2})
    assert [{"config": {"b": 2}, "config_id": "channel"}] == updates(game, 1)
    assert 2 == len(updates(other, 2))


def test_extensions_share_the_stores_of_a_channel(live, game):
    with linked_game(live, CHANNEL, OTHER_ID) as of_another:
        game.data("subscribe", "state", {"topic_id": "channel"})
        game.data("subscribe", "config", {"config_id": "channel"})

        set_state(of_another, {"a": 1})
        of_another.data("set", "config", {"config": {"b": 2}})

        expected = [{"topic_id": "channel", "state": {"a": 1}}, {"config": {"b": 2}, "config_id": "channel"}]
        assert expected == updates(game, 2)
        assert {"a": 1} == state(game)


def test_each_extension_has_one_state_for_all_channels(live, admin_game):
    with linked_game(live, "888") as elsewhere, linked_game(live, CHANNEL, OTHER_ID) as of_another:
        for each in (elsewhere, of_another):
            each.data("subscribe", "state", {"topic_id": "extension"})

        set_state(admin_game, {"a": 1}, "extension")

        assert [{"topic_id": "extension", "state": {"a": 1}}] == updates(elsewhere, 1)
        assert [] == updates(of_another, 0)
        assert {} == state(of_another, "extension")


def test_authenticating_again_keeps_the_subscriptions(live, game, broadcaster):
    game.data("subscribe", "state", {"topic_id": "channel"})

    game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})

    broadcaster.post("channel_state", json={"a": 1})
    assert [{"topic_id": "channel", "state": {"a": 1}}] == updates(game, 1)


@pytest.mark.parametrize("path", ["channel_config", "config/channel"])
def test_config_written_on_either_side_updates_subscribers(game, broadcaster, path):
    game.data("subscribe", "config", {"config_id": "channel"})

    answer = game.data("set", "config", {"config": {"a": 1}})
    game.data("patch", "config", {"config": [{"op": "add", "path": "/n", "value": 7}]})
    broadcaster.post(path, json={"rest": True})

    assert ({"a": 1}, "channel") == (answer["config"], answer["config_id"])
    documents = ({"a": 1}, {"a": 1, "n": 7}, {"rest": True})
    assert [{"config": document, "config_id": "channel"} for document in documents] == updates(game, 3)


def test_the_combined_config_has_no_updates(game):
    assert 400 == game.error("subscribe", "config", {"config_id": "combined"})["status"]
