"""State and config over the socket: reads, writes, patches and roles (rulings X5, S1, S2, S4)."""

from __future__ import annotations

import json

import pytest

from support.authentication import authenticated_game
from support.socket_stores import patch, set_state, state, updates

CHANNEL_STATE = {"state_id": "channel"}


@pytest.mark.ruling("X5", "S2")
@pytest.mark.parametrize("state_id", ["channel", "extension"])
def test_an_unwritten_state_is_an_empty_object(game, state_id):
    assert {"ok": True, "state": {}} == game.data("get", "state", {"state_id": state_id})


@pytest.mark.ruling("X5")
def test_set_replaces_the_state_and_returns_it(game):
    set_state(game, {"a": 1})

    assert {"ok": True, "state": {"b": 2}} == set_state(game, {"b": 2})
    assert {"b": 2} == state(game)


@pytest.mark.ruling("X5")
def test_patch_changes_the_state_and_returns_all_of_it(game):
    set_state(game, {"a": 1})

    answer = game.data("patch", "state", patch({"op": "add", "path": "/b", "value": 2}))

    assert {"ok": True, "state": {"a": 1, "b": 2}} == answer


@pytest.mark.ruling("X5", "S2")
def test_a_patch_with_an_object_is_a_merge_patch(game):
    set_state(game, {"a": 1, "b": 2})

    answer = game.data("patch", "state", {"state_id": "channel", "state": {"a": None, "c": 3}})

    assert {"b": 2, "c": 3} == answer["state"]


@pytest.mark.ruling("X5", "S2")
def test_operations_apply_in_order_and_ignore_an_unneeded_value(game):
    answer = game.data(
        "patch",
        "state",
        patch(
            {"op": "add", "path": "/list", "value": [1]},
            {"op": "add", "path": "/list/-", "value": 3},
            {"op": "add", "path": "/list/1", "value": 2},
            {"op": "test", "path": "/list/2", "value": 3},
            {"op": "copy", "from": "/list/0", "path": "/first"},
            {"op": "move", "from": "/list/2", "path": "/last", "value": None},
            {"op": "replace", "path": "/first", "value": "one"},
            {"op": "remove", "path": "/list/0", "value": None},
        ),
    )

    assert {"list": [2], "first": "one", "last": 3} == answer["state"]


@pytest.mark.ruling("X5", "S2")
@pytest.mark.parametrize("op", ["add", "add_intermediates"])
def test_add_creates_missing_parents(game, op):
    answer = game.data("patch", "state", patch({"op": op, "path": "/game/text/game_data", "value": [1]}))

    assert {"game": {"text": {"game_data": [1]}}} == answer["state"]


@pytest.mark.ruling("X5", "S2")
@pytest.mark.parametrize(
    "failing",
    [
        {"op": "test", "path": "/exp", "value": "another"},
        {"op": "replace", "path": "/nothing", "value": 1},
        {"op": "remove", "path": "/nothing"},
        {"op": "replace", "path": "/no/parent", "value": 1},
        {"op": "add", "path": "/exp/below", "value": 1},
        {"op": "frobnicate", "path": "/exp", "value": 1},
        {"op": "add", "path": "exp", "value": 1},
        {"op": "add", "value": 1},
        {"path": "/exp", "value": 1},
        {"op": "copy", "path": "/a"},
        {"op": "replace", "path": "", "value": []},
        {},
    ],
)
def test_a_failing_operation_is_400_and_changes_nothing(game, failing):
    set_state(game, {"exp": 1})
    game.data("subscribe", "state", {"topic_id": "channel"})

    error = game.error("patch", "state", patch({"op": "replace", "path": "/exp", "value": 2}, failing))

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {"exp": 1} == state(game)
    assert [] == updates(game, 0)


@pytest.mark.ruling("X5", "S2")
@pytest.mark.parametrize("document", [[1, 2], 1, "x", None, True])
@pytest.mark.parametrize(("target", "member"), [("state", "state"), ("config", "config")])
def test_a_store_must_be_an_object(game, target, member, document):
    error = game.error("set", target, {f"{target}_id": "channel", member: document})

    assert (400, "Bad Request") == (error["status"], error["title"])


@pytest.mark.ruling("X5")
@pytest.mark.parametrize(("action", "target"), [("set", "state"), ("patch", "state"), ("set", "config")])
def test_a_write_without_a_document_is_400(game, action, target):
    assert 400 == game.error(action, target, {f"{target}_id": "channel"})["status"]


@pytest.mark.ruling("X5", "S4")
def test_a_store_has_at_most_64_kib(game):
    size = 64 * 1024 - len('{"a":""}')

    set_state(game, {"a": "x" * size})

    assert 400 == game.error("set", "state", {"state_id": "channel", "state": {"a": "x" * (size + 1)}})["status"]
    assert size == len(state(game)["a"])


@pytest.mark.ruling("X5")
@pytest.mark.parametrize("name", ["", "viewer", "extension_viewer", "Channel", "combined", "x" * 1_000])
def test_only_channel_and_extension_have_a_state(game, name):
    assert 400 == game.error("get", "state", {"state_id": name})["status"]
    assert 400 == game.error("subscribe", "state", {"topic_id": name})["status"]


@pytest.mark.ruling("X5")
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


@pytest.mark.ruling("X5", "S1")
@pytest.mark.parametrize(("state_id", "statuses"), [("channel", (0, 0, 403)), ("extension", (403, 0, 403))])
@pytest.mark.parametrize("action", ["set", "patch"])
def test_the_roles_that_may_write_state(game, admin_game, viewer_game, state_id, statuses, action):
    request = {"state_id": state_id, "state": {"a": 1}}

    replies = [each.request(action, "state", request) for each in (game, admin_game, viewer_game)]

    assert statuses == tuple(reply.get("errors", [{"status": 0}])[0]["status"] for reply in replies)


@pytest.mark.ruling("X5", "S1")
@pytest.mark.parametrize("config_id", ["channel", "extension"])
def test_the_roles_that_may_write_config(game, admin_game, viewer_game, config_id):
    request = {"config_id": config_id, "config": {"a": 1}}

    replies = [each.request("set", "config", request) for each in (game, admin_game, viewer_game)]

    seen = [reply.get("errors", [{"status": 0}])[0]["status"] for reply in replies]
    assert ([0, 0, 403] if config_id == "channel" else [403, 0, 403]) == seen


@pytest.mark.ruling("S1")
@pytest.mark.parametrize("state_id", ["channel", "extension"])
def test_every_role_may_read(game, admin_game, viewer_game, state_id):
    set_state(admin_game, {"a": 1}, state_id)

    assert [{"a": 1}] * 3 == [state(each, state_id) for each in (game, admin_game, viewer_game)]


@pytest.mark.ruling("X5")
def test_rest_and_socket_share_the_data(game, broadcaster):
    broadcaster.post("channel_state", json={"rest": 1})
    by_rest = state(game)
    game.data("patch", "state", patch({"op": "add", "path": "/socket", "value": 2}))

    assert {"rest": 1} == by_rest
    assert {"rest": 1, "socket": 2} == broadcaster.get("channel_state").json()


@pytest.mark.ruling("A4", "X5")
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


@pytest.mark.ruling("X5")
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


@pytest.mark.ruling("X5")
def test_json_values_are_stored_unchanged(game, broadcaster):
    document = {
        "é": "\U0001f600",
        "n": -1.5e300,
        "big": 2**53,
        "none": None,
        "deep": [[[{"": []}]]],
        "<&>": "\u2028\x00",
    }

    set_state(game, document)

    assert document == state(game) == broadcaster.get("channel_state").json()
