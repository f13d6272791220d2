"""A connection whose other side is gone is cut, and one that lives stays, however quiet it is."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from emulator.realtime.session import Connection
from support.service import CLIENT_ID, LiveServer
from support.socket_client import TIMEOUT, SocketClient

PING, PONG = b"\x89\x00", b"\x8a\x80\x00\x00\x00\x00"
"""As a server sends it, and as a client answers."""


@contextmanager
def raw(live: LiveServer, *, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """A connection behind its handshake, on which nothing happens by itself."""
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


def outlet(live: LiveServer) -> Connection:
    """The service's side of the connection that was opened last."""
    return list(live.service.gateway._peers)[-1].connection


def check(live: LiveServer, checked: Connection) -> None:
    """What `keep_alive` does now and then."""

    async def act() -> None:
        checked.ping()

    live.run(act())


def settle(live: LiveServer) -> None:
    """Return when the service has read what was sent to it before; an answer to anybody says so."""
    live.now()


def is_cut(connection: socket.socket) -> bool:
    """Whether the connection ends; what still comes on it is passed over."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_who_answers_pings_stays(live: LiveServer):
    with raw(live) as connection:
        checked = outlet(live)
        for _ in range(4):
            check(live, checked)
            assert PING == connection.recv(2)
            connection.sendall(PONG)
            settle(live)

        assert 1 == live.service.gateway.size


def test_who_is_silent_is_cut_at_the_second_check(live: LiveServer):
    with raw(live) as connection, SocketClient(live) as other:
        (checked, _) = [session.connection for session in live.service.gateway._peers]
        check(live, checked)
        assert PING == connection.recv(2)
        assert 2 == live.service.gateway.size

        check(live, checked)

        assert is_cut(connection)
        settle(live)
        assert 1 == live.service.gateway.size
        assert other.no_update()


def test_who_was_silent_long_ago_is_given_a_ping_to_answer(live: LiveServer):
    """Silence counts from one ping to the next."""
    with raw(live) as connection:
        checked = outlet(live)
        for _ in range(2):
            check(live, checked)
            connection.sendall(PONG)
            settle(live)
        check(live, checked)

        assert PING * 3 == connection.recv(6, socket.MSG_WAITALL)
        assert 1 == live.service.gateway.size


@pytest.mark.parametrize(
    "piece",
    [b"\x81\x80\x00\x00\x00\x00", b"\x89\x80\x00\x00\x00\x00", b"\x01\x80\x00\x00\x00\x00", b"\x81"],
    ids=["a message", "a ping of its own", "a part of a message", "a part of a frame"],
)
def test_anything_at_all_is_a_sign_of_life(live: LiveServer, piece: bytes):
    with raw(live) as connection:
        checked = outlet(live)
        check(live, checked)
        connection.sendall(piece)
        settle(live)
        check(live, checked)

        assert 1 == live.service.gateway.size


def test_whom_the_service_does_not_listen_to_for_now_is_not_taken_for_dead(live: LiveServer):
    """It stops reading from those who ask faster than they are answered."""

    async def act(name: str) -> None:
        getattr(checked, name)()

    with SocketClient(live) as game:
        checked = outlet(live)
        check(live, checked)
        live.run(act("pause"))
        sent = game.send("get", "state", {"state_id": "channel"})
        for _ in range(3):
            check(live, checked)
        live.run(act("resume"))
        check(live, checked)

        assert sent == game.reply()["meta"]["request_id"]
        assert 1 == live.service.gateway.size


def test_a_check_of_a_connection_that_is_closing_does_nothing(live: LiveServer):
    with raw(live) as connection:
        checked = outlet(live)

        async def act() -> None:
            checked.close(1000, "enough")
            checked.ping()

        live.run(act())

        assert b"\x88\x08" + struct.pack("!H", 1000) + b"enough" == connection.recv(10, socket.MSG_WAITALL)
        connection.sendall(b"\x88\x80\x00\x00\x00\x00")
        assert is_cut(connection)


def flood(connection: socket.socket) -> None:
    """Ping until nobody takes it any more, or for far too long."""
    pings = (b"\x89\xfd\x00\x00\x00\x00" + b"p" * 125) * 500
    for _ in range(5_000):
        connection.sendall(pings)


def test_who_pings_and_never_reads_the_answers_is_cut(live: LiveServer):
    """Or the service's memory would fill with them."""
    with raw(live, receive_buffer=4096) as connection:
        with pytest.raises(ConnectionError):
            flood(connection)
        settle(live)

        assert 0 == live.service.gateway.size
