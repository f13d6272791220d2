"""The service answers every frame of the published C++ client as that client expects (websocket clients)."""

from __future__ import annotations

import json
import random
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realtime.test_socket_fuzz import check as check_envelope
from support.service import LiveServer
from support.socket_client import NO_REQUEST, SocketClient, request_pin

FRAMES = Path(__file__).parent / "frames_of_the_cpp_client.txt"
CLIENT = "client-1"
CHANNEL = "1001"
START = 1_795_219_740_000
"""Shortly before the recorded poll that has a start and an end."""
BLOB = "".join(random.Random(5).choices(string.ascii_letters + string.digits + "+/", k=20_095))
Json = dict[str, Any]


def connections() -> list[list[tuple[int, str]]]:
    """The frames of each connection with their expected statuses; 0 means success."""
    found: list[list[tuple[int, str]]] = []
    for line in FRAMES.read_text().splitlines():
        if line == "# open":
            found.append([])
        elif not line.startswith("#"):
            status, _, frame = line.partition(" ")
            found[-1].append((int(status), frame))
    return found


def check(message: Json) -> None:
    """Fail for a message on which the client would throw, abort, hang or read out of bounds."""
    check_envelope(message)
    data = message.get("data", {})
    for name in ("jwt", "refresh", "twitch_name", "twitch_id", "config_id", "topic_id"):
        assert isinstance(data.get(name, ""), str), message
    for name in ("state", "config", "poll"):
        assert isinstance(data.get(name, {}), dict), message
    assert isinstance(data.get("transactions", []), list), message
    if message["meta"]["action"] == "update":
        assert message["meta"]["target"] in ("channel", "extension", "config", "poll", "authentication"), message
    if "poll" in data:
        check_poll(data)


def check_poll(data: Json) -> None:
    """The client reads `results[0]` of every poll, and its voting example one result per option."""
    poll = data["poll"]
    assert [str, str, str, list] == [type(poll[name]) for name in ("poll_id", "prompt", "status", "options")], data
    assert {str} >= {type(option) for option in poll["options"]}, data
    assert len(data["results"]) >= max(1, len(poll["options"])), data
    numbers = (*data["results"], data["count"], data["mean"], data["sum"])
    assert {int, float} >= {type(number) for number in numbers}, data


class Run:
    """The recorded conversation, with the placeholders in <> replaced by values from this service."""

    def __init__(self, live: LiveServer) -> None:
        pin = next(each for each in iter(lambda: request_pin(live, CHANNEL, CLIENT), "") if each.lower() != each)
        self.placeholders = {"<pin>": pin, "<pin in other case>": pin.lower(), "<blob>": BLOB}
        self.updates: list[Json] = []

    def filled(self, frame: str) -> str:
        for placeholder, value in self.placeholders.items():
            frame = frame.replace(placeholder, value)
        return frame

    def answer(self, game: SocketClient) -> Json:
        """The next reply; updates before it are stored."""
        while (message := game.message())["meta"]["request_id"] == NO_REQUEST and message["meta"]["action"] == "update":
            check(message)
            self.updates.append(message)
        check(message)
        if "refresh" in message.get("data", {}):
            known = sum(each.startswith("<refresh") for each in self.placeholders)
            self.placeholders[f"<refresh {known + 1}>"] = message["data"]["refresh"]
        return message


def status_of(reply: Json) -> int:
    return int(reply["errors"][0]["status"]) if "errors" in reply else 0


def expected_meta(frame: str) -> tuple[Any, str, str]:
    """The request id, action and target that the reply must repeat."""
    if not frame.startswith('{"'):
        return NO_REQUEST, "", ""
    envelope = json.loads(frame)
    params = envelope["params"]
    return params.get("request_id", NO_REQUEST), envelope["action"], params.get("target", "")


def actual_meta(reply: Json) -> tuple[Any, str, str]:
    return reply["meta"]["request_id"], reply["meta"]["action"], reply["meta"]["target"]


@pytest.fixture
def first(live: LiveServer) -> Iterator[tuple[Run, list[tuple[int, str]], list[Json]]]:
    """The first connection, frame by frame: the frames sent and their replies."""
    live.set(START)
    run, (frames, _) = Run(live), connections()
    with SocketClient(live, f"/0.2.0/{CLIENT}") as game:
        replies = []
        for _, frame in frames:
            game.socket.send(run.filled(frame))
            replies.append(run.answer(game))
        yield run, frames, replies


def test_every_frame_has_the_expected_reply(first):
    _, frames, replies = first

    assert [(status, frame) for status, frame in frames] == [
        (status_of(reply), frame) for reply, (_, frame) in zip(replies, frames, strict=True)
    ]
    assert [expected_meta(frame) for _, frame in frames] == [actual_meta(reply) for reply in replies]


def test_each_change_is_one_update_while_subscribed(first):
    run, _, _ = first

    updates = Counter((update["meta"]["target"], update["data"].get("event", "")) for update in run.updates)

    assert {("authentication", "refreshed"): 3, ("channel", ""): 12, ("config", ""): 2, ("poll", ""): 1} == updates
    assert ["expired"] == [update["data"]["poll"]["status"] for update in run.updates if "poll" in update["data"]]


def test_pipelined_frames_after_a_reconnect_get_responses_in_order(live, first):
    run, _, _ = first
    frames = connections()[1]

    with SocketClient(live, f"/0.2.0/{CLIENT}") as game:
        for _, frame in frames:
            game.socket.send(run.filled(frame))
        replies = [run.answer(game) for _ in frames]

    assert [(status, frame) for status, frame in frames] == [
        (status_of(reply), frame) for reply, (_, frame) in zip(replies, frames, strict=True)
    ]
    assert [expected_meta(frame) for _, frame in frames] == [actual_meta(reply) for reply in replies]
