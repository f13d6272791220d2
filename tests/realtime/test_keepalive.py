"""Keepalive: dead connections are aborted; idle ones that answer pings stay open."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from emulator.realtime.closes import closed_by_call
from realtime.raw_sockets import CLOSE, PING, PONG, TEXT, Raw, frame, latest, ping, settle
from support.service import LiveServer, live_server
from support.socket_client import SocketClient


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A service that has just started: its own pings, every 20 s, do not mix with those of the test."""
    with live_server() as live:
        yield live


def is_closed(raw: Raw) -> bool:
    """Wait until the connection closes; discards what is still received."""
    with suppress(ConnectionResetError):
        while raw.read() is not None:
            pass
    return True


def test_a_connection_that_answers_pings_stays_open(live: LiveServer):
    with Raw(live) as raw:
        server_side = latest(live)
        for _ in range(4):
            ping(live, server_side)
            assert (PING, b"") == raw.read()
            raw.send(frame(PONG))
            settle(live)

        assert 1 == len(live.service.gateway.admission)


def test_a_silent_connection_is_aborted_at_the_second_ping(live: LiveServer):
    with Raw(live) as raw, SocketClient(live) as other:
        (server_side, _) = [session.connection for session in live.service.gateway.admission.peers]
        ping(live, server_side)
        assert (PING, b"") == raw.read()
        assert 2 == len(live.service.gateway.admission)

        ping(live, server_side)

        assert is_closed(raw)
        settle(live)
        assert 1 == len(live.service.gateway.admission)
        assert other.no_update()


@pytest.mark.parametrize(
    "received",
    [frame(TEXT), frame(PING), frame(TEXT, fin=False), b"\x81"],
    ids=["a message", "a ping", "a fragment", "part of a frame"],
)
def test_any_received_bytes_keep_a_connection_open(live: LiveServer, received: bytes):
    with Raw(live) as raw:
        server_side = latest(live)
        ping(live, server_side)
        raw.send(received)
        settle(live)
        ping(live, server_side)

        assert 1 == len(live.service.gateway.admission)


def test_a_connection_that_the_service_does_not_read_stays_open(live: LiveServer):
    """The service pauses reading when a client sends requests faster than it can answer them."""

    async def act(name: str) -> None:
        getattr(server_side, name)()

    with SocketClient(live) as game:
        server_side = latest(live)
        ping(live, server_side)
        live.run(act("pause"))
        sent = game.send("get", "state", {"state_id": "channel"})
        for _ in range(3):
            ping(live, server_side)
        live.run(act("resume"))
        ping(live, server_side)

        assert sent == game.reply()["meta"]["request_id"]
        assert 1 == len(live.service.gateway.admission)


def test_a_closing_connection_is_not_pinged(live: LiveServer):
    with Raw(live) as raw:
        server_side = latest(live)

        async def act() -> None:
            server_side.close(closed_by_call(reason="enough", code=1000))
            server_side.ping()

        live.run(act())

        assert (CLOSE, struct.pack("!H", 1000) + b"enough") == raw.read()
        raw.send(frame(CLOSE))
        assert is_closed(raw)
