"""Connections of `extcli simulate socket`, at a service that also sends messages of other kinds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from extcli.simulate.listeners import Audience, Listener


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


@pytest.mark.parametrize(
    "other",
    [
        "not JSON",
        "[1]",
        json.dumps({"event": "message", "data": "[1]"}),
        json.dumps({"event": "message", "data": "not JSON"}),
        event("not compressed"),
        event("[1]"),
        event(json.dumps({"event": 7})),
        event(5),
    ],
    ids=["text", "array", "data-array", "data-text", "message-text", "message-array", "event-number", "message-number"],
)
def test_a_message_of_another_kind_does_not_end_the_listening(other: str):
    own = event(json.dumps({"event": "x:y:news", "data": {"simulation": 7, "number": 0}}))

    async def received(url: str) -> list[int]:
        listener = Listener(Audience(1, "page", "news", "1001", 7), url, "y", "token", 5.0)
        try:
            await listener.open(asyncio.Semaphore(1))
            await listener.wait(1)
        finally:
            listener.close()
        return list(listener.arrived)

    with pages_at(other, own) as url:
        assert [0] == asyncio.run(received(url))
