"""Requests, replies and errors on the socket, independent of actions (Errors; rulings X2, X3, X9).

Malformed requests are in `rules/test_envelope.py`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.service import CLIENT_ID, LiveServer
from support.socket_client import SocketClient, linked_game, request_pin

READ = {"action": "get", "params": {"request_id": 1, "target": "state"}, "data": {"state_id": "channel"}}
UNSUPPORTED = ["drops", "matchmaking", "match", "match_poll", "gameMetadata", "gatewayActions", "gatewayActionState"]


def send(game: SocketClient, frame: Any) -> dict[str, Any]:
    """Send a raw frame; return the reply."""
    game.socket.send(frame if isinstance(frame, str) else json.dumps(frame))
    return game.message()


def error_of(reply: dict[str, Any]) -> tuple[int, str]:
    (error,) = reply["errors"]
    return error["status"], error["title"]


@pytest.mark.ruling("X2")
def test_a_reply_has_meta_and_data(live, game):
    reply = game.request("get", "state", {"state_id": "channel"})

    assert {"meta", "data"} == reply.keys()
    assert {"request_id", "action", "target", "timestamp"} == reply["meta"].keys()
    assert ("get", "state") == (reply["meta"]["action"], reply["meta"]["target"])


@pytest.mark.ruling("X2")
def test_an_error_has_status_number_title_and_detail(game):
    reply = game.request("get", "state", {"state_id": "nothing"})

    assert {"meta", "errors"} == reply.keys()
    (error,) = reply["errors"]
    assert {"status", "number", "title", "detail"} == error.keys()
    assert (400, 400, "Bad Request") == (error["status"], error["number"], error["title"])
    assert "state_id" in error["detail"]


@pytest.mark.ruling("X2")
def test_the_timestamp_is_the_time_of_the_service_in_ms(live, game):
    live.set(2_000_000_000_123)

    assert 2_000_000_000_123 == game.request("get", "state", {"state_id": "channel"})["meta"]["timestamp"]


@pytest.mark.ruling("X2")
def test_the_target_of_a_request_without_one_is_an_empty_string(live, unlinked):
    reply = unlinked.request("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})

    assert "" == reply["meta"]["target"]


@pytest.mark.ruling("X2")
def test_200_pipelined_requests_are_answered_in_order(game):
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
    # Each read sees the write before it and no later one.
    assert [{"n": n - 2} for n in range(3, 200, 3)] == [replies[n]["data"]["state"] for n in range(3, 200, 3)]


@pytest.mark.ruling("X2")
def test_requests_pipelined_after_authenticate_have_its_rights(live, unlinked):
    unlinked.send("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})
    unlinked.send("subscribe", "state", {"topic_id": "channel"})
    unlinked.send("set", "state", {"state_id": "channel", "state": {"a": 1}})

    replies = [unlinked.reply() for _ in range(3)]

    assert [True] * 3 == ["data" in reply for reply in replies]
    assert {"a": 1} == unlinked.update()["data"]["state"]


@pytest.mark.ruling("X2")
def test_one_connection_does_not_delay_another(live, game):
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
def test_authenticate_and_authentication_need_no_credential(unlinked):
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
def test_any_other_request_before_authentication_is_401(unlinked, action, target, data):
    error = unlinked.error(action, target, data)

    assert (401, 401, "Unauthorized") == (error["status"], error["number"], error["title"])
    assert "authenticate" in error["detail"]


@pytest.mark.ruling("X3")
@pytest.mark.parametrize("action", ["subscribe", "unsubscribe"])
def test_a_subscription_without_a_target_is_400_before_authentication_too(unlinked, action):
    error = unlinked.error(action, "", {})

    assert (400, f"params.target: {action} needs a target") == (error["status"], error["detail"])


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
@pytest.mark.parametrize("target", UNSUPPORTED)
@pytest.mark.parametrize(
    "action", ["subscribe", "unsubscribe", "get", "set", "create", "validate", "broadcast", "clear"]
)
def test_an_unsupported_target_is_404_and_says_so(game, action, target):
    error = game.error(action, target, {"topic_id": "x", "id": "x"})

    assert (404, "Not Found") == (error["status"], error["title"])
    assert f"{target} is not part of this service; nothing was done" == error["detail"]


@pytest.mark.ruling("X2", "X3")
@pytest.mark.parametrize("frame", ["{", [], {"action": ""}, {"params": {"request_id": 5}}, {**READ, "data": 1}])
def test_a_malformed_request_is_400_and_the_connection_stays_open(game, frame):
    reply = send(game, frame)

    assert (400, "Bad Request") == error_of(reply)
    assert {} == game.data("get", "state", {"state_id": "channel"})["state"]


def test_a_closed_connection_drops_its_subscriptions(live: LiveServer):
    with linked_game(live) as first:
        first.data("subscribe", "state", {"topic_id": "channel"})
        topics = live.service.hub._subscribers
        assert 1 == len(topics)

    with linked_game(live) as second:  # answered after the service has seen the first close
        second.data("get", "state", {"state_id": "channel"})

        assert 0 == len(topics)
