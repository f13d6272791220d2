"""Frames equal those of `websockets`, and a failed check of a credential is answered (ruling B4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.frames import Frame, Opcode

from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.errors import EngineError
from emulator.core.observability.metrics import Metrics
from emulator.core.scheduler import Scheduler
from emulator.realtime.connection import text_frame
from emulator.realtime.hub import Hub
from emulator.realtime.web_page_connection import PusherAccess, PusherConnection


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


def page_of(connection: Recorder, verify: Callable[[str, str], Awaitable[Caller]]) -> PusherConnection:
    """Return a page of the sandbox whose credentials are verified by this function."""
    clock = Clock()
    metrics = Metrics("sandbox", "1.0", sockets=lambda: 0, unauthenticated=lambda: 0, held=lambda: 0)
    access = PusherAccess(verify, True, clock, Scheduler(clock), 0, metrics)
    return PusherConnection(connection, Hub(), lambda page: None, access, 7, 1, "")


@pytest.mark.parametrize(("failure", "status"), [(ValueError("a bug"), 500), (EngineError("disk full"), 503)])
def test_a_check_of_a_credential_that_fails_is_answered_and_the_page_read_on(failure: Exception, status: int):
    async def failing(credential: str, address: str) -> Caller:
        raise failure

    async def two_messages(page: PusherConnection) -> None:
        page.on_message(b'{"event":"pusher:subscribe","data":{"channel":"news","auth":"my-extension a.b.c"}}')
        page.on_message(b'{"event":"pusher:ping"}')
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    connection = Recorder()
    asyncio.run(two_messages(page_of(connection, failing)))

    refused, pong = connection.sent
    assert ("pusher:subscription_error", status) == (refused["event"], json.loads(refused["data"])["status"])
    assert ("pusher:pong", False) == (pong["event"], connection.is_paused)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 1_000_000])
def test_a_text_frame_has_the_header_of_its_size(size: int):
    text = b"x" * size

    assert text_frame(text) == Frame(Opcode.TEXT, text).serialize(mask=False, extensions=[])
