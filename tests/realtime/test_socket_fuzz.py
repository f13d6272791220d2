"""Fuzzing of the socket: each message has one well-formed reply, and nothing fails or leaks (rulings X2, X3, X4)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from realtime.resources import leak_checked_server
from support.examples import spread
from support.random_requests import RequestGenerator
from support.service import LiveServer
from support.socket_client import NO_REQUEST, SocketClient, linked_game

PIPELINED = 40
"""Frames sent before the first reply is read."""
MAX_LOGINS = 9
"""Per connection: the tenth failure would close it (ruling T4)."""
MAX_STRANGE = 4_096
"""Bytes of a message before authentication: a longer one would close the connection (ruling X3)."""
LAST_ID = 54_321
"""The request id that ends a conversation."""


def is_update(message: dict[str, Any]) -> bool:
    return message["meta"]["action"] == "update" and message["meta"]["request_id"] == NO_REQUEST and "data" in message


def is_ambiguous(text: str) -> bool:
    """Whether its reply looks like an update: the action `update` without a request id."""
    try:
        request = json.loads(text)
        return request["action"] == "update" and request["params"].get("request_id", NO_REQUEST) == NO_REQUEST
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return '"update"' in text


def sendable(texts: list[str]) -> list[str]:
    """The texts that one connection may send without being closed for failed logins."""
    sent, attempts = [], 0
    for text in texts:
        attempts += '"authenticate"' in text
        if not is_ambiguous(text) and ('"authenticate"' not in text or attempts <= MAX_LOGINS):
            sent.append(text)
    return sent


def check(message: Any) -> None:
    """Fail unless a message is a well-formed reply or update, and not a 5xx."""
    meta = message["meta"]
    assert {"request_id", "action", "target", "timestamp"} == meta.keys()
    assert [str, str, int] == [type(meta[name]) for name in ("action", "target", "timestamp")]
    assert type(meta["request_id"]) in (int, float)
    assert message.keys() in ({"meta", "data"}, {"meta", "errors"})
    if "data" in message:
        assert isinstance(message["data"], dict)
        return
    (error,) = message["errors"]
    assert [int, int, str, str] == [type(error[name]) for name in ("status", "number", "title", "detail")]
    assert 400 <= error["status"] == error["number"] < 500, message


def converse(game: SocketClient, texts: list[str]) -> int:
    """Send texts and check one reply to each, in order; return the number of texts sent."""
    texts = sendable(texts)
    for begin in range(0, len(texts), PIPELINED):
        batch = texts[begin : begin + PIPELINED]
        for text in batch:
            game.socket.send(text)
        replies = []
        while len(replies) < len(batch):
            message = game.message()
            check(message)
            if not is_update(message):
                replies.append(message)
        assert [expected_id(text, reply) for text, reply in zip(batch, replies, strict=True)] == [
            reply["meta"]["request_id"] for reply in replies
        ]
    game.socket.send(json.dumps({"action": "get", "params": {"request_id": LAST_ID, "target": "nothing"}}))
    while is_update(last := game.message()):
        check(last)
    assert LAST_ID == last["meta"]["request_id"]
    return len(texts)


def expected_id(text: str, reply: dict[str, Any]) -> Any:
    """The request id that the reply must repeat; for a malformed request 65535 is correct too."""
    try:
        params = json.loads(text)["params"]
        request_id = params["request_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return reply["meta"]["request_id"]
    malformed = "errors" in reply and reply["meta"]["request_id"] == NO_REQUEST
    return NO_REQUEST if malformed else request_id


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[LiveServer]:
    with leak_checked_server() as live:
        yield live
        with linked_game(live) as game:
            assert {"ok": True} == game.data("subscribe", "state", {"topic_id": "channel"})


@pytest.mark.parametrize("seed", spread(range(8), 4))
def test_every_random_request_has_one_reply(fuzzed, seed):
    generator, sent = RequestGenerator(random.Random(seed)), 0
    for conversation in range(25):
        texts = [generator.text() for _ in range(50)]
        if conversation % 5:
            with linked_game(fuzzed) as game:
                sent += converse(game, texts)
        else:
            with SocketClient(fuzzed) as stranger:
                sent += converse(stranger, [text for text in texts if len(text.encode()) <= MAX_STRANGE])

    assert sent > 1_000
