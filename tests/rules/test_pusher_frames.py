"""Messages of the Pusher protocol that are answered with an error (ruling B4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from emulator.callers import Caller
from emulator.clock import Clock
from emulator.control.operation.metrics import Metrics
from emulator.errors import EngineError
from emulator.realtime.hub import Hub
from emulator.realtime.web_page_access import PusherAccess
from emulator.realtime.web_page_connection import PusherConnection
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

    address = "127.0.0.1"
    request_id = "page-1"

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.is_paused = False

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def send(self, text: bytes) -> None:
        self.sent.append(json.loads(text))

    def write(self, frame: bytes) -> None:
        raise AssertionError

    def close(self, code: int, reason: str = "") -> None:
        raise AssertionError


async def no_credential(credential: str, address: str) -> Caller:
    raise AssertionError


def page_of(connection: Recorder, verify: Callable[[str, str], Awaitable[Caller]]) -> PusherConnection:
    """Return a page of the sandbox whose credentials are verified by this function."""
    clock = Clock()
    metrics = Metrics("sandbox", "1.0", sockets=lambda: pytest.fail("not read"), held=lambda: 0)
    access = PusherAccess(verify, True, clock, Scheduler(clock), 0, metrics)
    return PusherConnection(connection, Hub(), access, 7, 1, lambda page: None, "")


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_message_gets_a_response_with_an_error_43xx(text: str | None):
    connection = Recorder()
    page = page_of(connection, no_credential)

    page.received(None if text is None else text.encode())
    page.received(b'{"event":"pusher:subscribe","data":{"channel":"news"}}')

    error, confirmation = connection.sent
    assert ("pusher:error", {"code", "message"}) == (error["event"], error["data"].keys())
    assert 4300 <= error["data"]["code"] < 4400
    assert ("pusher_internal:subscription_succeeded", "news") == (confirmation["event"], confirmation["channel"])


@pytest.mark.parametrize(("failure", "status"), [(ValueError("a bug"), 500), (EngineError("disk full"), 503)])
def test_a_check_of_a_credential_that_fails_is_answered_and_the_page_read_on(failure: Exception, status: int):
    async def failing(credential: str, address: str) -> Caller:
        raise failure

    async def two_messages(page: PusherConnection) -> None:
        page.received(b'{"event":"pusher:subscribe","data":{"channel":"news","auth":"my-extension a.b.c"}}')
        page.received(b'{"event":"pusher:ping"}')
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    connection = Recorder()
    asyncio.run(two_messages(page_of(connection, failing)))

    refused, pong = connection.sent
    assert ("pusher:subscription_error", status) == (refused["event"], json.loads(refused["data"])["status"])
    assert ("pusher:pong", False) == (pong["event"], connection.is_paused)
