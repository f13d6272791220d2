"""State and config over the socket: reads, writes, patches and roles (rulings A4, S1, S2, S4, X5)."""

from __future__ import annotations

import json

import pytest

from realtime.socket_stores import patch, set_state, state, updates
from support.authentication import authenticated_game

CHANNEL_STATE = {"state_id": "channel"}


def test_set_replaces_the_state_and_returns_it(game):
    set_state(game, {"a": 1})

    assert {"ok": True, "state": {"b": 2}} == set_state(game, {"b": 2})
    assert {"b": 2} == state(game)


def test_patch_changes_the_state_and_returns_all_of_it(game):
    set_state(game, {"a": 1})

    answer = game.data("patch", "state", patch({"op": "add", "path": "/b", "value": 2}))

    assert {"ok": True, "state": {"a": 1, "b": 2}} == answer


def test_a_patch_with_an_object_is_a_merge_patch(game):
    set_state(game, {"a": 1, "b": 2})

    answer = game.data("patch", "state", {"state_id": "channel", "state": {"a": None, "c": 3}})

    assert {"b": 2, "c": 3} == answer["state"]


def test_a_state_has_at_most_64_kib(game):
    size = 64 * 1024 - len('{"a":""}')
    set_state(game, {"a": "x" * size})

    error = game.error("set", "state", {"state_id": "channel", "state": {"a": "x" * (size + 1)}})

    assert (400, size) == (error["status"], len(state(game)["a"]))


def test_a_failing_operation_gets_400_and_changes_nothing(game):
    set_state(game, {"exp": 1})
    game.data("subscribe", "state", {"topic_id": "channel"})

    operations = {"op": "replace", "path": "/exp", "value": 2}, {"op": "remove", "path": "/nothing"}
    error = game.error("patch", "state", patch(*operations))

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {"exp": 1} == state(game)
    assert [] == updates(game, 0)


@pytest.mark.parametrize("name", ["", "viewer", "extension_viewer", "Channel", "combined", "x" * 1_000])
def test_only_channel_and_extension_have_a_state(game, name):
    assert 400 == game.error("get", "state", {"state_id": name})["status"]
    assert 400 == game.error("subscribe", "state", {"topic_id": name})["status"]


def test_older_requests_use_the_target_as_store_and_update_as_patch(live, game):
    game.data("set", "channel", {"state": {"a": 1}})
    game.socket.send(
        json.dumps(
            {
                "action": "update",
                "params": {"request_id": 99, "target": "channel"},
                "data": {"state": [{"op": "add", "path": "/b", "value": 2}]},
            }
        )
    )
    reply = game.message()

    assert (99, "update", "channel") == tuple(reply["meta"][name] for name in ("request_id", "action", "target"))
    assert {"a": 1, "b": 2} == reply["data"]["state"] == game.data("get", "channel")["state"] == state(game)
    assert {} == game.data("get", "extension")["state"]


def test_a_token_without_a_channel_has_only_the_extension_state(live):
    with authenticated_game(live, "backend", channel=None) as game:
        set_state(game, {"a": 1}, "extension")

        refusals = [
            game.error("get", "state", CHANNEL_STATE),
            game.error("set", "config", {"config": {}}),
            game.error("subscribe", "state", {"topic_id": "channel"}),
        ]

        assert [400] * 3 == [error["status"] for error in refusals]
        assert {"a": 1} == state(game, "extension")


def test_config_is_read_by_id_or_combined(game, admin_game):
    admin_game.data("set", "config", {"config_id": "extension", "config": {"e": 1}})
    game.data("set", "config", {"config": {"c": 1}})

    read = {name: game.data("get", "config", {"config_id": name}) for name in ("channel", "extension", "combined")}

    assert {"channel": "channel", "extension": "extension", "combined": "combined"} == {
        name: data["config_id"] for name, data in read.items()
    }
    assert [{"c": 1}, {"e": 1}, {"channel": {"c": 1}, "extension": {"e": 1}}] == [
        data["config"] for data in read.values()
    ]
