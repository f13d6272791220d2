"""State and config over the socket: one data with REST, and updates to subscribers (rulings X5, S1, S2, S6)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.service import CHANNEL, CLIENT_ID, OTHER_ID, LiveServer
from support.socket_client import NO_REQUEST, SocketClient, linked_game, request_pin

CHANNEL_STATE = {"state_id": "channel"}


def by_jwt(live: LiveServer, role: str, client_id: str = CLIENT_ID, channel: str | None = CHANNEL) -> SocketClient:
    """A connection with the rights of a self-signed token."""
    token = live.client(role, user="5", channel=channel, client_id=client_id).headers["Authorization"].split()[1]
    game = SocketClient(live, f"/0.2.0/{client_id}")
    game.data("authenticate", data={"client_id": client_id, "jwt": token})
    return game


@pytest.fixture
def other(live: LiveServer) -> Iterator[SocketClient]:
    """A second game of channel 777."""
    with linked_game(live) as game:
        yield game


@pytest.fixture
def admin_game(live: LiveServer) -> Iterator[SocketClient]:
    with by_jwt(live, "admin") as game:
        yield game


@pytest.fixture
def viewer_game(live: LiveServer) -> Iterator[SocketClient]:
    with by_jwt(live, "viewer") as game:
        yield game


def state(game: SocketClient, state_id: str = "channel") -> dict[str, Any]:
    return dict(game.data("get", "state", {"state_id": state_id})["state"])


def set_state(game: SocketClient, document: object, state_id: str = "channel") -> dict[str, Any]:
    return game.data("set", "state", {"state_id": state_id, "state": document})


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"state_id": "channel", "state": list(operations)}


def updates(game: SocketClient, number: int) -> list[Any]:
    """The next so many updates, and the proof that there are no more."""
    seen = [game.update()["data"] for _ in range(number)]
    assert game.no_update()
    return seen


@pytest.mark.ruling("X5", "S2")
@pytest.mark.parametrize("state_id", ["channel", "extension"])
def test_a_state_never_written_reads_as_an_empty_object(game, state_id):
    assert {"ok": True, "state": {}} == game.data("get", "state", {"state_id": state_id})


@pytest.mark.ruling("X5")
def test_set_replaces_the_whole_state_and_answers_it(game):
    set_state(game, {"a": 1})

    assert {"ok": True, "state": {"b": 2}} == set_state(game, {"b": 2})
    assert {"b": 2} == state(game)


@pytest.mark.ruling("X5")
def test_patch_changes_the_state_and_answers_the_whole_of_it(game):
    set_state(game, {"a": 1})

    answer = game.data("patch", "state", patch({"op": "add", "path": "/b", "value": 2}))

    assert {"ok": True, "state": {"a": 1, "b": 2}} == answer


@pytest.mark.ruling("X5", "S2")
def test_a_patch_may_be_an_object_to_merge(game):
    set_state(game, {"a": 1, "b": 2})

    answer = game.data("patch", "state", {"state_id": "channel", "state": {"a": None, "c": 3}})

    assert {"b": 2, "c": 3} == answer["state"]


@pytest.mark.ruling("X5", "S2")
def test_operations_are_applied_in_order_and_a_superfluous_value_is_fine(game):
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
def test_add_makes_missing_parents(game, op):
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
def test_a_failing_operation_is_400_and_nothing_is_changed_and_nobody_hears(game, failing):
    set_state(game, {"exp": 1})
    game.data("subscribe", "state", {"topic_id": "channel"})

    error = game.error("patch", "state", patch({"op": "replace", "path": "/exp", "value": 2}, failing))

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {"exp": 1} == state(game)
    assert [] == updates(game, 0)


@pytest.mark.ruling("X5", "S2")
@pytest.mark.parametrize("document", [[1, 2], 1, "x", None, True])
@pytest.mark.parametrize(("target", "member"), [("state", "state"), ("config", "config")])
def test_a_store_is_an_object_and_nothing_else(game, target, member, document):
    error = game.error("set", target, {f"{target}_id": "channel", member: document})

    assert (400, "Bad Request") == (error["status"], error["title"])


@pytest.mark.ruling("X5")
@pytest.mark.parametrize(("action", "target"), [("set", "state"), ("patch", "state"), ("set", "config")])
def test_a_write_without_a_document_is_400(game, action, target):
    assert 400 == game.error(action, target, {f"{target}_id": "channel"})["status"]


@pytest.mark.ruling("X5", "S4")
def test_a_store_of_64_kib_is_taken_and_one_byte_more_is_400(game):
    room = 64 * 1024 - len('{"a":""}')

    set_state(game, {"a": "x" * room})

    assert 400 == game.error("set", "state", {"state_id": "channel", "state": {"a": "x" * (room + 1)}})["status"]
    assert room == len(state(game)["a"])


@pytest.mark.ruling("X5")
@pytest.mark.parametrize("name", ["", "viewer", "extension_viewer", "Channel", "combined", "x" * 1_000])
def test_there_is_no_other_state_than_that_of_the_channel_and_the_extension(game, name):
    assert 400 == game.error("get", "state", {"state_id": name})["status"]
    assert 400 == game.error("subscribe", "state", {"topic_id": name})["status"]


@pytest.mark.ruling("X5")
def test_older_requests_name_the_store_by_the_target_and_a_patch_update(live, game):
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


@pytest.mark.ruling("X5")
@pytest.mark.parametrize(
    ("target", "data"),
    [
        ("state", {"topic_id": "channel"}),
        ("state", {"state_id": "channel"}),
        ("channel", None),
        ("", {"target": "channel"}),
    ],
)
def test_every_form_of_a_subscription_to_the_channel_s_state_is_taken(game, target, data):
    game.data("subscribe", target, data)

    set_state(game, {"a": 1})

    assert [{"topic_id": "channel", "state": {"a": 1}}] == updates(game, 1)
    game.data("unsubscribe", target, data)
    set_state(game, {"a": 2})
    assert [] == updates(game, 0)


@pytest.mark.ruling("X5", "S1")
@pytest.mark.parametrize(("state_id", "statuses"), [("channel", (0, 0, 403)), ("extension", (403, 0, 403))])
@pytest.mark.parametrize("action", ["set", "patch"])
def test_a_game_writes_the_channel_s_state_an_admin_the_extension_s_too_and_a_viewer_neither(
    game, admin_game, viewer_game, state_id, statuses, action
):
    request = {"state_id": state_id, "state": {"a": 1}}

    replies = [each.request(action, "state", request) for each in (game, admin_game, viewer_game)]

    assert statuses == tuple(reply.get("errors", [{"status": 0}])[0]["status"] for reply in replies)


@pytest.mark.ruling("X5", "S1")
@pytest.mark.parametrize("config_id", ["channel", "extension"])
def test_config_is_written_by_whom_state_is(game, admin_game, viewer_game, config_id):
    request = {"config_id": config_id, "config": {"a": 1}}

    replies = [each.request("set", "config", request) for each in (game, admin_game, viewer_game)]

    seen = [reply.get("errors", [{"status": 0}])[0]["status"] for reply in replies]
    assert ([0, 0, 403] if config_id == "channel" else [403, 0, 403]) == seen


@pytest.mark.ruling("S1")
@pytest.mark.parametrize("state_id", ["channel", "extension"])
def test_everybody_reads(game, admin_game, viewer_game, state_id):
    set_state(admin_game, {"a": 1}, state_id)

    assert [{"a": 1}] * 3 == [state(each, state_id) for each in (game, admin_game, viewer_game)]


@pytest.mark.ruling("X5")
def test_a_viewer_may_subscribe(game, viewer_game):
    viewer_game.data("subscribe", "state", {"topic_id": "channel"})

    set_state(game, {"a": 1})

    assert [{"topic_id": "channel", "state": {"a": 1}}] == updates(viewer_game, 1)


@pytest.mark.ruling("X5")
def test_rest_and_socket_see_one_and_the_same_data(game, broadcaster):
    broadcaster.post("channel_state", json={"rest": 1})
    by_rest = state(game)
    game.data("patch", "state", patch({"op": "add", "path": "/socket", "value": 2}))

    assert {"rest": 1} == by_rest
    assert {"rest": 1, "socket": 2} == broadcaster.get("channel_state").json()


@pytest.mark.ruling("X5")
def test_every_write_updates_every_subscriber_once_the_writer_included(game, other):
    for each in (game, other):
        each.data("subscribe", "state", {"topic_id": "channel"})

    set_state(game, {"a": 1})
    game.data("patch", "state", patch({"op": "add", "path": "/b", "value": 2}))
    set_state(other, {})

    expected = [{"topic_id": "channel", "state": document} for document in ({"a": 1}, {"a": 1, "b": 2}, {})]
    assert [expected, expected] == [updates(each, 3) for each in (game, other)]


@pytest.mark.ruling("X5")
@pytest.mark.parametrize(("method", "document"), [("POST", {"a": 1}), ("PATCH", {"a": 1})])
def test_a_write_over_rest_updates_subscribers_once(game, broadcaster, method, document):
    game.data("subscribe", "state", {"topic_id": "channel"})

    broadcaster.request(method, "channel_state", json=document).raise_for_status()

    assert [{"topic_id": "channel", "state": {"a": 1}}] == updates(game, 1)


@pytest.mark.ruling("X2", "X5")
@pytest.mark.parametrize("state_id", ["channel", "extension"])
def test_an_update_names_its_store_as_target_and_has_the_request_id_65535(live, admin_game, state_id):
    live.set(2_000_000_000_000)
    admin_game.data("subscribe", "state", {"topic_id": state_id})

    set_state(admin_game, {"a": 1}, state_id)

    meta = {"request_id": NO_REQUEST, "action": "update", "target": state_id, "timestamp": 2_000_000_000_000}
    assert {"meta": meta, "data": {"topic_id": state_id, "state": {"a": 1}}} == admin_game.update()


@pytest.mark.ruling("X5")
def test_a_refused_write_updates_nobody(game, viewer_game):
    game.data("subscribe", "state", {"topic_id": "channel"})

    viewer_game.error("set", "state", {"state_id": "channel", "state": {"a": 1}})
    game.error("set", "state", {"state_id": "channel", "state": [1]})

    assert [] == updates(game, 0)


@pytest.mark.ruling("X5")
def test_there_is_no_update_on_subscribing_and_twice_is_once(game):
    set_state(game, {"a": 1})
    for _ in range(2):
        game.data("subscribe", "state", {"topic_id": "channel"})
    at_once = updates(game, 0)

    set_state(game, {"a": 2})

    assert ([], 1) == (at_once, len(updates(game, 1)))


@pytest.mark.ruling("X5")
def test_unsubscribing_ends_the_updates_of_this_connection_and_of_this_topic_only(game, other, broadcaster):
    for each in (game, other):
        each.data("subscribe", "state", {"topic_id": "channel"})
        each.data("subscribe", "config", {"config_id": "channel"})

    game.data("unsubscribe", "state", {"topic_id": "channel"})

    broadcaster.post("channel_state", json={"a": 1})
    broadcaster.post("channel_config", json={"b": 2})
    assert [{"config": {"b": 2}, "config_id": "channel"}] == updates(game, 1)
    assert 2 == len(updates(other, 2))


@pytest.mark.ruling("X5")
@pytest.mark.parametrize("target", ["state", "config", "poll"])
def test_unsubscribing_from_what_was_never_subscribed_is_ok(game, target):
    data = {"topic_id": "channel", "config_id": "channel"}

    assert {"ok": True} == game.data("unsubscribe", target, data)


@pytest.mark.ruling("X5", "S6")
def test_the_channel_s_stores_are_one_for_all_extensions_in_the_channel(live, game):
    with linked_game(live, CHANNEL, OTHER_ID) as of_another:
        game.data("subscribe", "state", {"topic_id": "channel"})
        game.data("subscribe", "config", {"config_id": "channel"})

        set_state(of_another, {"a": 1})
        of_another.data("set", "config", {"config": {"b": 2}})

        expected = [{"topic_id": "channel", "state": {"a": 1}}, {"config": {"b": 2}, "config_id": "channel"}]
        assert expected == updates(game, 2)
        assert {"a": 1} == state(game)


@pytest.mark.ruling("X5", "S6")
def test_the_extension_s_state_is_its_own_in_all_channels(live, admin_game):
    with linked_game(live, "888") as elsewhere, linked_game(live, CHANNEL, OTHER_ID) as of_another:
        for each in (elsewhere, of_another):
            each.data("subscribe", "state", {"topic_id": "extension"})

        set_state(admin_game, {"a": 1}, "extension")

        assert [{"topic_id": "extension", "state": {"a": 1}}] == updates(elsewhere, 1)
        assert [] == updates(of_another, 0)
        assert {} == state(of_another, "extension")


@pytest.mark.ruling("X5")
def test_other_channels_hear_and_see_nothing(live, game):
    with linked_game(live, "888") as elsewhere:
        elsewhere.data("subscribe", "state", {"topic_id": "channel"})

        set_state(game, {"a": 1})

        assert [] == updates(elsewhere, 0)
        assert {} == state(elsewhere)


@pytest.mark.ruling("X4", "X5")
def test_subscriptions_end_with_the_rights_to_the_channel(live, game, broadcaster):
    game.data("subscribe", "state", {"topic_id": "channel"})
    game.data("subscribe", "config", {"config_id": "channel"})

    game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live, "888")})

    broadcaster.post("channel_state", json={"a": 1})
    broadcaster.post("channel_config", json={"a": 1})
    assert [] == updates(game, 0)


@pytest.mark.ruling("X4", "X5")
def test_subscriptions_stay_when_the_same_rights_are_taken_again(live, game, broadcaster):
    game.data("subscribe", "state", {"topic_id": "channel"})

    game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})

    broadcaster.post("channel_state", json={"a": 1})
    assert [{"topic_id": "channel", "state": {"a": 1}}] == updates(game, 1)


@pytest.mark.ruling("A4", "X5")
def test_a_token_without_a_channel_reads_and_writes_the_extension_s_state_only(live):
    with by_jwt(live, "backend", channel=None) as game:
        set_state(game, {"a": 1}, "extension")

        refusals = [
            game.error("get", "state", CHANNEL_STATE),
            game.error("set", "config", {"config": {}}),
            game.error("subscribe", "state", {"topic_id": "channel"}),
        ]

        assert [400] * 3 == [error["status"] for error in refusals]
        assert {"a": 1} == state(game, "extension")


@pytest.mark.ruling("X5")
def test_config_is_read_by_its_id_and_combined(game, admin_game):
    admin_game.data("set", "config", {"config_id": "extension", "config": {"e": 1}})
    game.data("set", "config", {"config": {"c": 1}})

    read = {name: game.data("get", "config", {"config_id": name}) for name in ("channel", "extension", "combined")}

    assert {"channel": "channel", "extension": "extension", "combined": "combined"} == {
        name: data["config_id"] for name, data in read.items()
    }
    assert [{"c": 1}, {"e": 1}, {"channel": {"c": 1}, "extension": {"e": 1}}] == [
        data["config"] for data in read.values()
    ]


@pytest.mark.ruling("X5", "W1")
@pytest.mark.parametrize("path", ["channel_config", "config/channel"])
def test_config_updates_subscribers_from_either_side(game, broadcaster, path):
    game.data("subscribe", "config", {"config_id": "channel"})

    answer = game.data("set", "config", {"config": {"a": 1}})
    game.data("patch", "config", {"config": [{"op": "add", "path": "/n", "value": 7}]})
    broadcaster.post(path, json={"rest": True})

    assert ({"a": 1}, "channel") == (answer["config"], answer["config_id"])
    documents = ({"a": 1}, {"a": 1, "n": 7}, {"rest": True})
    assert [{"config": document, "config_id": "channel"} for document in documents] == updates(game, 3)


@pytest.mark.ruling("X5")
def test_config_cannot_be_subscribed_combined(game):
    assert 400 == game.error("subscribe", "config", {"config_id": "combined"})["status"]


@pytest.mark.ruling("X5")
def test_whatever_json_can_say_comes_back_as_it_was(game, broadcaster):
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
