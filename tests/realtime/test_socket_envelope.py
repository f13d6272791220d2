"""Requests, replies and errors on the socket, independent of actions (Errors; rulings X2, X3, X9).

The rules X2 and X3 of `extcli conform` hold the rest. Malformed requests are in `rules/test_envelope.py`.
"""

from __future__ import annotations

import json
from itertools import product

import pytest

from support.service import CLIENT_ID, LiveServer
from support.socket_client import linked_game, request_pin

UNSUPPORTED = ("drops", "matchmaking", "match", "match_poll", "gameMetadata", "gatewayActions", "gatewayActionState")


def test_the_timestamp_is_the_time_of_the_service_in_ms(live, game):
    live.set(2_000_000_000_123)

    assert 2_000_000_000_123 == game.request("get", "state", {"state_id": "channel"})["meta"]["timestamp"]


def test_the_target_of_a_request_without_one_is_an_empty_string(live, unlinked):
    reply = unlinked.request("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})

    assert "" == reply["meta"]["target"]


def test_200_pipelined_requests_get_responses_in_order(game):
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


def test_requests_pipelined_after_authenticate_have_its_rights(live, unlinked):
    unlinked.send("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})
    unlinked.send("subscribe", "state", {"topic_id": "channel"})
    unlinked.send("set", "state", {"state_id": "channel", "state": {"a": 1}})

    replies = [unlinked.reply() for _ in range(3)]

    assert [True] * 3 == ["data" in reply for reply in replies]
    assert {"a": 1} == unlinked.update()["data"]["state"]


def test_one_connection_does_not_delay_another(live, game):
    with linked_game(live) as other:
        for _ in range(100):
            game.send("get", "state", {"state_id": "channel"})

        assert {} == other.data("get", "state", {"state_id": "channel"})["state"]
        assert list(range(1, 1 + 100)) == [game.reply()["meta"]["request_id"] - 1 for _ in range(100)]


def test_a_closed_connection_drops_its_subscriptions(live: LiveServer):
    with linked_game(live) as first:
        first.data("subscribe", "state", {"topic_id": "channel"})
        topics = live.service.hub._subscribers
        assert 1 == len(topics)

    with linked_game(live) as second:  # answered after the service has seen the first close
        second.data("get", "state", {"state_id": "channel"})

        assert 0 == len(topics)


def test_every_action_on_an_unsupported_target_gets_404_and_says_so(game):
    actions = ("subscribe", "unsubscribe", "get", "set", "create", "validate", "broadcast", "clear")
    for action, target in product(actions, UNSUPPORTED):
        error = game.error(action, target, {"topic_id": "x", "id": "x"})

        assert (404, "Not Found") == (error["status"], error["title"]), action
        assert f"{target} is not part of this service; nothing was done" == error["detail"], action


@pytest.mark.parametrize(
    ("action", "target", "data", "member"),
    [
        ("create", "poll", {"poll_id": "a b"}, "data.poll_id"),
        ("get", "poll", {"poll_id": ""}, "data.poll_id"),
        ("reconfigure", "poll", {"poll_id": "a b", "config": {}}, "data.poll_id"),
        ("delete", "poll", {"poll_id": "global-"}, "data.poll_id"),
        ("subscribe", "poll", {"topic_id": "a b"}, "data.topic_id"),
        ("subscribe", "poll", {"poll_id": "a b"}, "data.poll_id"),
        ("broadcast", "", {"topic": "", "data": {}}, "data.topic"),
        ("subscribe", "broadcast", {"topic_id": "a\n"}, "data.topic_id"),
        ("subscribe", "a\n", {}, "params.target"),
    ],
)
def test_the_error_of_an_invalid_name_begins_with_the_member_that_has_it(game, action, target, data, member):
    error = game.error(action, target, data)

    assert 400 == error["status"]
    assert error["detail"].startswith(f"{member}: ")
