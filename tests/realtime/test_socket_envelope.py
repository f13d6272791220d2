"""Requests, replies and refusals on the socket, whatever they are about (Errors; rulings X2, X3, X9)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from support.service import CLIENT_ID, LiveServer
from support.socket_client import NO_REQUEST, SocketClient, linked_game, request_pin

MIB = 1024 * 1024
READ = {"action": "get", "params": {"request_id": 1, "target": "state"}, "data": {"state_id": "channel"}}
BEYOND = ["drops", "matchmaking", "match", "match_poll", "gameMetadata", "gatewayActions", "gatewayActionState"]


def say(game: SocketClient, frame: Any) -> dict[str, Any]:
    """Send this very frame; the reply."""
    game.socket.send(frame if isinstance(frame, str) else json.dumps(frame))
    return game.message()


def fault(reply: dict[str, Any]) -> tuple[int, str]:
    (error,) = reply["errors"]
    return error["status"], error["title"]


def closed(game: SocketClient) -> int | None:
    """Read on until the connection is closed; the code."""
    with suppress(ConnectionClosed):
        while True:
            game.message()
    return game.socket.close_code


@pytest.mark.ruling("X2")
def test_a_reply_has_meta_and_data(live, game):
    reply = game.request("get", "state", {"state_id": "channel"})

    assert {"meta", "data"} == reply.keys()
    assert {"request_id", "action", "target", "timestamp"} == reply["meta"].keys()
    assert ("get", "state") == (reply["meta"]["action"], reply["meta"]["target"])


@pytest.mark.ruling("X2")
def test_a_refusal_has_meta_and_errors_with_status_number_title_and_detail(game):
    reply = game.request("get", "state", {"state_id": "nothing"})

    assert {"meta", "errors"} == reply.keys()
    (error,) = reply["errors"]
    assert {"status", "number", "title", "detail"} == error.keys()
    assert (400, 400, "Bad Request") == (error["status"], error["number"], error["title"])
    assert "state_id" in error["detail"]


@pytest.mark.ruling("X2")
def test_the_timestamp_is_the_service_s_time_in_ms(live, game):
    live.set(2_000_000_000_123)

    assert 2_000_000_000_123 == game.request("get", "state", {"state_id": "channel"})["meta"]["timestamp"]


@pytest.mark.ruling("X2")
@pytest.mark.parametrize("request_id", [0, 1, 127, 128, 65_535, 65_536, -1, 7.0, 1.5, 2**53])
def test_the_request_id_is_echoed_whatever_number_it_is(game, request_id):
    reply = say(game, {**READ, "params": {"request_id": request_id, "target": "state"}})

    assert request_id == reply["meta"]["request_id"]
    assert "data" in reply


@pytest.mark.ruling("X2")
@pytest.mark.parametrize("params", [{"target": "state"}, {"target": "state", "x": 1}])
def test_a_request_without_an_id_is_answered_with_65535(game, params):
    reply = say(game, {**READ, "params": params})

    assert (NO_REQUEST, True) == (reply["meta"]["request_id"], "data" in reply)


@pytest.mark.ruling("X2")
@pytest.mark.parametrize("request_id", [None, "1", "", [], {}, True])
def test_an_id_that_is_no_number_is_400_with_65535(game, request_id):
    reply = say(game, {**READ, "params": {"request_id": request_id, "target": "state"}})

    assert ((400, "Bad Request"), NO_REQUEST) == (fault(reply), reply["meta"]["request_id"])


@pytest.mark.ruling("X2")
def test_the_target_of_a_request_without_one_is_an_empty_string(live, unlinked):
    reply = unlinked.request("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})

    assert "" == reply["meta"]["target"]


@pytest.mark.ruling("X2")
@pytest.mark.parametrize(
    "frame",
    [
        {},
        [],
        {"action": None},
        {"action": "get", "params": None},
        {"action": "get", "params": {"target": None}},
        {"action": 1, "params": {"target": 1}},
        {"action": ["get"], "params": []},
        {"action": "get", "params": {"target": "state"}, "data": None},
        {"action": "get", "params": {"target": "state"}, "data": "x"},
    ],
)
def test_meta_is_whole_and_without_null_whatever_was_sent(game, frame):
    meta = say(game, frame)["meta"]

    assert [int, str, str, int] == [type(meta[name]) for name in ("request_id", "action", "target", "timestamp")]


@pytest.mark.ruling("X2")
def test_200_requests_sent_at_once_are_each_answered_once_and_in_order(game):
    frames = [
        {"action": ("get", "set", "frobnicate")[number % 3], "params": {"request_id": number, "target": "state"},
         "data": {"state_id": "channel", "state": {"n": number}}}
        for number in range(200)
    ]  # fmt: skip

    for frame in frames:
        game.socket.send(json.dumps(frame))
    replies = [game.message() for _ in frames]

    assert list(range(200)) == [reply["meta"]["request_id"] for reply in replies]
    assert [frame["action"] for frame in frames] == [reply["meta"]["action"] for reply in replies]
    # Each read sees the write before it, and none behind it.
    assert [{"n": n - 2} for n in range(3, 200, 3)] == [replies[n]["data"]["state"] for n in range(3, 200, 3)]


@pytest.mark.ruling("X2")
def test_what_is_sent_right_behind_authenticate_has_its_rights_already(live, unlinked):
    unlinked.send("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})
    unlinked.send("subscribe", "state", {"topic_id": "channel"})
    unlinked.send("set", "state", {"state_id": "channel", "state": {"a": 1}})

    replies = [unlinked.reply() for _ in range(3)]

    assert [True] * 3 == ["data" in reply for reply in replies]
    assert {"a": 1} == unlinked.update()["data"]["state"]


@pytest.mark.ruling("X2")
def test_requests_of_one_connection_do_not_wait_for_those_of_another(live, game):
    with linked_game(live) as other:
        for _ in range(100):
            game.send("get", "state", {"state_id": "channel"})

        assert {} == other.data("get", "state", {"state_id": "channel"})["state"]
        assert list(range(1, 1 + 100)) == [game.reply()["meta"]["request_id"] - 1 for _ in range(100)]


@pytest.mark.ruling("X2")
def test_a_reply_comes_before_the_updates_that_its_request_causes(game):
    game.data("subscribe", "state", {"topic_id": "channel"})

    game.send("set", "state", {"state_id": "channel", "state": {"a": 1}})

    assert ["set", "update"] == [game.message()["meta"]["action"] for _ in range(2)]


@pytest.mark.ruling("X3")
def test_authenticate_and_authentication_are_open_to_all(unlinked):
    assert {"ok": True} == unlinked.data("subscribe", "authentication")
    assert {"ok": True} == unlinked.data("unsubscribe", "authentication")
    assert 400 == unlinked.error("authenticate", data={"client_id": CLIENT_ID, "pin": "ZZZZZZ"})["status"]


@pytest.mark.ruling("X3")
@pytest.mark.parametrize(
    ("action", "target", "data"),
    [
        ("get", "state", {"state_id": "channel"}),
        ("get", "state", {}),
        ("set", "state", {"state_id": "channel", "state": {}}),
        ("patch", "state", {"state_id": "channel", "state": []}),
        ("get", "config", {"config_id": "combined"}),
        ("set", "config", {"config": {}}),
        ("create", "poll", {"poll_id": "p", "prompt": "?"}),
        ("get", "poll", {"poll_id": "p"}),
        ("delete", "poll", {"poll_id": "p"}),
        ("reconfigure", "poll", {"poll_id": "p", "config": {}}),
        ("broadcast", "", {"topic": "news", "data": {}}),
        ("subscribe", "state", {"topic_id": "channel"}),
        ("subscribe", "config", {"config_id": "channel"}),
        ("subscribe", "poll", {"topic_id": "p"}),
        ("subscribe", "broadcast", {"topic_id": "news"}),
        ("subscribe", "news", {}),
        ("unsubscribe", "state", {"topic_id": "channel"}),
        ("frobnicate", "state", {}),
        ("get", "match", {}),
    ],
)
def test_before_authentication_everything_else_is_401_unauthorized(unlinked, action, target, data):
    error = unlinked.error(action, target, data)

    assert (401, 401, "Unauthorized") == (error["status"], error["number"], error["title"])
    assert "authenticate" in error["detail"]


@pytest.mark.ruling("X3")
@pytest.mark.parametrize(
    ("action", "target"),
    [("frobnicate", "state"), ("get", "no-such-target"), ("get", ""), ("set", "poll"), ("vote", "poll"),
     ("expire", "poll"), ("GET", "state"), ("create", "state"), ("x" * 10_000, "y" * 10_000)],
)  # fmt: skip
def test_an_unknown_action_or_target_is_404_not_found(game, action, target):
    error = game.error(action, target, {})

    assert (404, 404, "Not Found") == (error["status"], error["number"], error["title"])


@pytest.mark.ruling("X9")
@pytest.mark.parametrize("target", BEYOND)
@pytest.mark.parametrize(
    "action", ["subscribe", "unsubscribe", "get", "set", "create", "validate", "broadcast", "clear"]
)
def test_a_target_beyond_the_service_is_404_and_says_that_it_is_no_part_of_it(game, action, target):
    error = game.error(action, target, {"topic_id": "x", "id": "x"})

    assert (404, "Not Found") == (error["status"], error["title"])
    assert f"{target} is not part of this service; nothing was done" == error["detail"]


@pytest.mark.ruling("X3")
@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "{this is not json", "nul", "[1,", '"', "{}{}", '{"action":"get",}', "\0", "\ufeff{}", "NaN",
     '{"action":NaN}', "[" * 100_000, '{"a":' * 100_000, '{"action":"\\ud800"}', "é", "\U0001f600"],
)  # fmt: skip
def test_a_text_that_is_unreadable_is_400_with_65535_and_the_connection_stays(game, text):
    reply = say(game, text)

    assert ((400, "Bad Request"), NO_REQUEST) == (fault(reply), reply["meta"]["request_id"])
    assert ("", "") == (reply["meta"]["action"], reply["meta"]["target"])
    assert {} == game.data("get", "state", {"state_id": "channel"})["state"]


@pytest.mark.ruling("X3")
@pytest.mark.parametrize("frame", [[], {}, 1, None, "get", [READ], {"params": {"request_id": 5}}, {"action": ""}])
def test_json_that_is_no_request_is_400_and_the_connection_stays(game, frame):
    reply = say(game, frame)

    assert (400, "Bad Request") == fault(reply)
    assert {} == game.data("get", "state", {"state_id": "channel"})["state"]


@pytest.mark.ruling("X2", "X3")
@pytest.mark.parametrize(
    "wrong",
    [
        {"action": 1},
        {"action": None},
        {"action": []},
        {"params": {"request_id": 9, "target": 1}},
        {"params": {"request_id": 9, "target": []}},
    ],
)
def test_a_request_with_a_member_of_the_wrong_type_is_400_under_its_own_id(game, wrong):
    reply = say(game, {**READ, "params": {"request_id": 9, "target": "state"}, **wrong})

    assert ((400, "Bad Request"), 9) == (fault(reply), reply["meta"]["request_id"])


@pytest.mark.ruling("X3")
def test_members_that_the_service_does_not_know_are_ignored_and_the_last_of_two_wins(game):
    text = '{"x":1,"action":"nope","action":"get","params":{"y":[],"request_id":3,"target":"state"},"data":{"state_id":"channel","z":{}}}'  # noqa: E501

    reply = say(game, text)

    assert (3, {}) == (reply["meta"]["request_id"], reply["data"]["state"])


@pytest.mark.ruling("X3")
def test_a_binary_message_closes_with_1003_behind_the_replies_to_what_came_before(game):
    game.send("get", "state", {"state_id": "channel"})
    game.socket.send(b"\x00")

    assert "data" in game.reply()
    assert 1003 == closed(game)


@pytest.mark.ruling("X3")
def test_a_message_of_2_mib_is_taken(game):
    frame = json.dumps({**READ, "pad": ""})

    reply = say(game, frame.replace('"pad": ""', f'"pad": "{"x" * (2 * MIB - len(frame))}"'))

    assert "data" in reply


@pytest.mark.ruling("X3")
@pytest.mark.parametrize("text", [b"\xff", b'{"action":"\xc3"}', b"\xed\xa0\x80", b"\xf5\x80\x80\x80"])
def test_text_that_is_not_utf_8_closes_with_1007(game, text):
    game.socket.send(text, text=True)

    assert 1007 == closed(game)


@pytest.mark.ruling("X3")
@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_fragmented_message_is_one_message(game, size):
    data = {"state_id": "channel", "state": {"a": "é\U0001f600"}}
    request = {"action": "set", "params": {"request_id": 7, "target": "state"}, "data": data}
    frame = json.dumps(request, ensure_ascii=False).encode()

    game.socket.send([frame[at : at + size] for at in range(0, len(frame), size)], text=True)
    reply = game.message()

    assert (7, {"a": "é\U0001f600"}) == (reply["meta"]["request_id"], reply["data"]["state"])


@pytest.mark.ruling("X3")
def test_a_ping_is_answered_at_any_time(game):
    assert game.socket.ping(b"here").wait(5)
    assert {} == game.data("get", "state", {"state_id": "channel"})["state"]


def test_a_connection_that_ends_is_forgotten(live: LiveServer):
    with linked_game(live) as first:
        first.data("subscribe", "state", {"topic_id": "channel"})
        topics = live.service.hub._subscribers
        assert 1 == len(topics)

    with linked_game(live) as second:  # answered after the end of the first was seen
        second.data("get", "state", {"state_id": "channel"})

        assert 0 == len(topics)


@pytest.mark.parametrize("data", [1, [], "x"])
@pytest.mark.ruling("X2")
def test_data_that_is_no_object_is_400_under_its_own_id(game, data):
    reply = say(game, {**READ, "params": {"request_id": 9, "target": "state"}, "data": data})

    assert (9, "get", "state") == tuple(reply["meta"][name] for name in ("request_id", "action", "target"))
    assert 400 == fault(reply)[0]


@pytest.mark.ruling("X2")
def test_a_request_id_beyond_all_measure_is_400(game):
    endless = "1" + "0" * 400
    reply = say(game, f'{{"action":"get","params":{{"request_id":{endless},"target":"state"}}}}')

    assert (400, 65_535) == (fault(reply)[0], reply["meta"]["request_id"])
