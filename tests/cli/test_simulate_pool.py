"""The generator and the listeners of `extcli simulate`, at servers that answer in every way, also against HTTP."""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from threading import Thread
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from extcli.api.http import httpx
from extcli.simulate.crowds import PlanRun
from extcli.simulate.listeners import Audience, Listener
from extcli.simulate.outcome import NO_RESPONSE, NOT_SENT, RequestOutcomes
from extcli.simulate.plan import Pace, Plan
from extcli.simulate.result import Options

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
LATER = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
MUCH_LATER = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n"
ENDS = None
"""Stands for closing the connection without a response."""

Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[int, list[int]]]:
    """Serve; yields the port and the requests, as they come. `answer` gets the number of each."""
    received: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                received.append(int(head.split()[1][1:]))
                await answer(len(received), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], received


def always(data: bytes | None) -> Answer:
    async def answer(number: int, writer: asyncio.StreamWriter) -> None:
        if data is ENDS:
            writer.transport.abort()
        else:
            writer.write(data)

    return answer


def sending(
    url: str, viewer: list[int], at: list[float], *, connections: int = 2, pauses_all: bool = False, **settings: Any
) -> PlanRun:
    """Return a run of requests that say their index."""
    plan = Plan(0, max(viewer) + 1, array("l", viewer), array("d", at))
    options = Options(Pace(1.0), connections, is_production=pauses_all)
    return PlanRun(url, plan, lambda index: httpx.Request("GET", f"{url}/{index}"), options, **settings)


async def sent(
    answer: Answer | int, count: int = 3, *, viewers: int | None = None, at: float = 0.0, **settings: Any
) -> tuple[RequestOutcomes, list[int]]:
    """Send this many requests. Return their outcomes and what the server received. `answer` may be a port instead."""
    async with serving(always(OK) if isinstance(answer, int) else answer) as (port, received):
        url = f"http://127.0.0.1:{answer if isinstance(answer, int) else port}"
        viewer = [index % (viewers or count) for index in range(count)]
        run = sending(url, viewer, [at] * count, **{"timeout": 5.0, **settings})
        await asyncio.wait_for(run.run(), 20)
        return run.outcomes, received


@pytest.mark.parametrize("answer", [ENDS, b"HTTP/1.1 200 OK\r\nContent-Le", b"SSH-2.0-x\r\n"])
async def test_a_connection_that_ends_early_leaves_no_response(answer: bytes | None):
    async def early(number: int, writer: asyncio.StreamWriter) -> None:
        if answer is not ENDS:
            writer.write(answer)
            await writer.drain()
        writer.close()

    outcomes, _ = await sent(early)
    assert [NO_RESPONSE] * 3 == list(outcomes.status)


async def test_an_endless_response_fails_long_before_the_timeout():
    async def endless(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
            await writer.drain()

    outcomes, _ = await sent(endless, timeout=60)

    assert [NO_RESPONSE] * 3 == list(outcomes.status)
    assert max(outcomes.done) < 10


async def test_a_silent_service_leaves_no_response_after_the_timeout():
    async def silent(number: int, writer: asyncio.StreamWriter) -> None:
        pass

    outcomes, _ = await sent(silent, timeout=0.2)
    assert [NO_RESPONSE] * 3 == list(outcomes.status)
    assert max(outcomes.done) < 3


async def test_requests_that_find_no_connection_are_not_sent():
    outcomes, _ = await sent(1, timeout=0.2)

    assert [NOT_SENT] * 3 == list(outcomes.status)
    assert 0 == outcomes.sent_count


async def test_a_refused_request_is_repeated_when_the_service_says():
    async def refuse_twice(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(LATER if number <= 2 else OK)

    for pauses_all in (False, True):
        outcomes, received = await sent(refuse_twice, repeated_statuses=frozenset({429}), pauses_all=pauses_all)
        assert [200, 200, 200] == list(outcomes.status)
        assert (5, 2, 5) == (outcomes.sent_count, len(outcomes.repeat_times), len(received))


@pytest.mark.parametrize(("answer", "repeats"), [(LATER, frozenset()), (MUCH_LATER, frozenset({429}))])
async def test_a_refusal_is_final_without_retry_after_or_beyond_the_limit(answer: bytes, repeats: frozenset[int]):
    outcomes, _ = await sent(always(answer), repeated_statuses=repeats)

    assert [429] * 3 == list(outcomes.status)
    assert [] == outcomes.repeat_times


# Listeners: connections of `extcli simulate socket`, at a service that also sends messages of other kinds


@contextmanager
def pages_at(*frames: str) -> Iterator[str]:
    """The URL of a service that greets a page, accepts its subscription, and then sends these frames."""

    def handle(connection: ServerConnection) -> None:
        connection.send(json.dumps({"event": "pusher:connection_established", "data": "{}"}))
        connection.recv()
        connection.send(json.dumps({"event": "pusher_internal:subscription_succeeded", "data": "{}"}))
        for frame in frames:
            connection.send(frame)
        with suppress(ConnectionClosed):
            connection.recv()

    with serve(handle, "127.0.0.1", 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()


def event(message: object) -> str:
    return json.dumps({"event": "message", "data": json.dumps({"message": message})})


OTHERS = (
    *("not JSON", "[1]", json.dumps({"event": "message", "data": "[1]"})),
    *(json.dumps({"event": "message", "data": "not JSON"}), event("not compressed"), event("[1]")),
    *(event(json.dumps({"event": 7})), event(5)),
)


def test_messages_of_other_kinds_do_not_end_the_listening():
    own = event(json.dumps({"event": "x:y:news", "data": {"simulation": 7, "number": 0}}))

    async def received(url: str) -> list[int]:
        listener = Listener(Audience(1, "page", "news", "1001", 7), url, "y", "token", 5.0)
        try:
            await listener.open(asyncio.Semaphore(1))
            await listener.wait(1)
        finally:
            listener.close()
        return list(listener.arrivals)

    with pages_at(*OTHERS, own) as url:
        assert [0] == asyncio.run(received(url))
