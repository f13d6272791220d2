"""Messages of the Pusher protocol that are answered with an error (ruling B4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.callers import Caller
from emulator.clock import Clock
from emulator.realtime.hub import Hub
from emulator.realtime.pusher import PusherConnection
from emulator.realtime.pusher_access import PusherAccess
from emulator.scheduling.scheduler import Scheduler

MALFORMED = [
    "",
    "{",
    "hello",
    "[]",
    '["pusher:ping"]',
    "null",
    "7",
    "{}",
    '{"event":null}',
    '{"event":7}',
    '{"event":["pusher:ping"]}',
    '{"data":{}}',
    '{"event":""}',
    '{"event":"ping"}',
    '{"event":"Pusher:ping"}',
    '{"event":"client-message","channel":"news","data":{}}',
    '{"event":"pusher:signin","data":{}}',
    '{"event":"pusher:ping","data":"{"}',
    '{"event":"pusher:subscribe"}',
    '{"event":"pusher:subscribe","data":[]}',
    '{"event":"pusher:subscribe","data":"[]"}',
    '{"event":"pusher:subscribe","data":{}}',
    '{"event":"pusher:subscribe","data":{"channel":7}}',
    '{"event":"pusher:subscribe","data":{"channel":null}}',
    '{"event":"pusher:subscribe","data":{"channel":["news"]}}',
    '{"event":"pusher:subscribe","data":{"channel":""}}',
    '{"event":"pusher:subscribe","channel":"news"}',
    f'{{"event":"pusher:subscribe","data":{{"channel":"{"x" * 201}"}}}}',
    '{"event":"pusher:unsubscribe"}',
    '{"event":"pusher:unsubscribe","data":{"channel":{}}}',
    '{"event":"\\ud800"}',
    '{"event":"pusher:subscribe","data":{"channel":"\\ud800"}}',
    "[" * 3_000,
    '{"event":NaN}',
    None,
]


class Recorder:
    """A connection that records what is sent on it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, text: bytes) -> None:
        self.sent.append(json.loads(text))

    def write(self, frame: bytes) -> None:
        raise AssertionError

    def close(self, code: int, reason: str = "") -> None:
        raise AssertionError


async def no_credential(credential: str, address: str) -> Caller:
    raise AssertionError


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_message_gets_a_response_with_an_error_43xx(text: str | None):
    connection = Recorder()
    clock = Clock()
    access = PusherAccess(no_credential, True, clock, Scheduler(clock), 0)
    page = PusherConnection(connection, Hub(), access, 7, 1, lambda page: None, "")

    page.received(None if text is None else text.encode())
    page.received(b'{"event":"pusher:subscribe","data":{"channel":"news"}}')

    error, confirmation = connection.sent
    assert ("pusher:error", {"code", "message"}) == (error["event"], error["data"].keys())
    assert 4300 <= error["data"]["code"] < 4400
    assert ("pusher_internal:subscription_succeeded", "news") == (confirmation["event"], confirmation["channel"])
