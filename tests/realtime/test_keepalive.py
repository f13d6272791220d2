"""Keepalive: dead connections are aborted; idle ones that answer pings stay open."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from emulator.realtime.closes import closed_by_call
from emulator.realtime.websocket import WebSocket
from support.service import CLIENT_ID, LiveServer
from support.socket_client import TIMEOUT, SocketClient

PING, PONG = b"\x89\x00", b"\x8a\x80\x00\x00\x00\x00"
"""As the server sends it, and as a client answers."""


@contextmanager
def raw(live: LiveServer, *, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """A raw connection after its handshake, which answers no pings by itself."""
    with socket.socket() as connection:
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(TIMEOUT)
        connection.connect(("127.0.0.1", urlsplit(live.url).port))
        connection.sendall(
            f"GET /0.2.0/{CLIENT_ID} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        assert head.startswith(b"HTTP/1.1 101 ")
        yield connection


def latest(live: LiveServer) -> WebSocket:
    """The service's side of the latest connection."""
    return list(live.service.gateway.admission.peers)[-1].connection


def ping(live: LiveServer, server_side: WebSocket) -> None:
    """Ping the client as `keep_alive` does."""

    async def act() -> None:
        server_side.ping()

    live.run(act())


def settle(live: LiveServer) -> None:
    """Return when the service has read everything sent to it so far."""
    live.now()


def is_closed(connection: socket.socket) -> bool:
    """Whether the connection closes; discards what is still received."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_a_connection_that_answers_pings_stays_open(live: LiveServer):
    with raw(live) as connection:
        server_side = latest(live)
        for _ in range(4):
            ping(live, server_side)
            assert PING == connection.recv(2)
            connection.sendall(PONG)
            settle(live)

        assert 1 == len(live.service.gateway.admission)


def test_a_silent_connection_is_aborted_at_the_second_ping(live: LiveServer):
    with raw(live) as connection, SocketClient(live) as other:
        (server_side, _) = [session.connection for session in live.service.gateway.admission.peers]
        ping(live, server_side)
        assert PING == connection.recv(2)
        assert 2 == len(live.service.gateway.admission)

        ping(live, server_side)

        assert is_closed(connection)
        settle(live)
        assert 1 == len(live.service.gateway.admission)
        assert other.no_update()


def test_silence_counts_from_one_ping_to_the_next(live: LiveServer):
    with raw(live) as connection:
        server_side = latest(live)
        for _ in range(2):
            ping(live, server_side)
            connection.sendall(PONG)
            settle(live)
        ping(live, server_side)

        assert PING * 3 == connection.recv(6, socket.MSG_WAITALL)
        assert 1 == len(live.service.gateway.admission)


@pytest.mark.parametrize(
    "received",
    [b"\x81\x80\x00\x00\x00\x00", b"\x89\x80\x00\x00\x00\x00", b"\x01\x80\x00\x00\x00\x00", b"\x81"],
    ids=["a message", "a ping", "a fragment", "part of a frame"],
)
def test_any_received_bytes_keep_a_connection_open(live: LiveServer, received: bytes):
    with raw(live) as connection:
        server_side = latest(live)
        ping(live, server_side)
        connection.sendall(received)
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
    with raw(live) as connection:
        server_side = latest(live)

        async def act() -> None:
            server_side.close(closed_by_call(reason="enough", code=1000))
            server_side.ping()

        live.run(act())

        assert b"\x88\x08" + struct.pack("!H", 1000) + b"enough" == connection.recv(10, socket.MSG_WAITALL)
        connection.sendall(b"\x88\x80\x00\x00\x00\x00")
        assert is_closed(connection)


def flood(connection: socket.socket) -> None:
    """Ping until the connection fails, 2.5 million times at most."""
    pings = (b"\x89\xfd\x00\x00\x00\x00" + b"p" * 125) * 500
    for _ in range(5_000):
        connection.sendall(pings)


def test_a_client_that_pings_but_never_reads_is_disconnected(live: LiveServer):
    """Otherwise the pongs would fill the service's memory."""
    with raw(live, receive_buffer=4096) as connection:
        with pytest.raises(ConnectionError):
            flood(connection)
        settle(live)

        assert 0 == len(live.service.gateway.admission)
