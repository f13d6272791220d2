"""Bytes that no WebSocket library would send: each ends in a close, and harms nobody (ruling X3)."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import pytest

from support.service import CLIENT_ID, LiveServer, live_server
from support.socket_client import TIMEOUT, linked_game

MIB = 1024 * 1024
TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
READ = json.dumps({"action": "get", "params": {"request_id": 1, "target": "nothing"}}).encode()


def frame(
    opcode: int, data: bytes = b"", *, fin: bool = True, reserved: int = 0, mask: bool = True, size: int = -1
) -> bytes:
    """One frame, as a client sends it; `size` is what its head says, if that is not so."""
    size = len(data) if size < 0 else size
    head = bytes([fin << 7 | reserved << 4 | opcode])
    bit = 0x80 if mask else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65_536:
        head += bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([bit | 127]) + size.to_bytes(8, "big")
    if not mask:
        return head + data
    key = b"\x13\x57\x9b\xdf"
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(data))


class Raw:
    """A TCP connection on which the handshake is done; it reads frames, and knows no more of WebSockets."""

    def __init__(self, live: LiveServer) -> None:
        self.socket = socket.create_connection(("127.0.0.1", urlsplit(live.url).port or 0), timeout=TIMEOUT)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /0.2.0/{CLIENT_ID} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        self._stream = self.socket.makefile("rb")
        assert b"101" in self._stream.readline()
        while self._stream.readline() != b"\r\n":
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()
        self.socket.close()

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)

    def read(self) -> tuple[int, bytes] | None:
        """The next frame: opcode and data; `None` at the end."""
        head = self._stream.read(2)
        if len(head) < 2:
            return None
        size = head[1]
        assert size < 128, "a server masks nothing"
        if size > 125:
            size = int.from_bytes(self._stream.read(2 if size == 126 else 8), "big")
        return head[0] & 0xF, self._stream.read(size)

    def ask(self) -> int:
        """The status of an ordinary request."""
        self.send(frame(TEXT, READ))
        opcode, data = self.read() or (0, b"")
        assert TEXT == opcode
        return int(json.loads(data)["errors"][0]["status"])

    def close_code(self) -> int | None:
        """Read on to the close; its code, or `None` for an end without one."""
        while (read := self.read()) is not None:
            if read[0] == CLOSE:
                return int.from_bytes(read[1][:2], "big")
        return None


@pytest.fixture
def raw(live: LiveServer) -> Iterator[Raw]:
    with Raw(live) as raw:
        yield raw


@pytest.mark.ruling("X3")
def test_a_frame_that_says_it_is_over_2_mib_closes_with_1009_before_it_has_come(raw):
    raw.send(frame(TEXT, size=2 * MIB + 1))

    assert 1009 == raw.close_code()


@pytest.mark.ruling("X3")
def test_fragments_of_over_2_mib_in_all_close_with_1009(raw):
    raw.send(frame(TEXT, b" " * MIB, fin=False), frame(0, size=MIB + 1))

    assert 1009 == raw.close_code()


@pytest.mark.ruling("X3")
@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 15])
def test_a_frame_of_an_unknown_kind_closes_with_1002(raw, opcode):
    raw.send(frame(opcode, b"x"))

    assert 1002 == raw.close_code()


@pytest.mark.ruling("X3")
@pytest.mark.parametrize(
    "wrong",
    [
        frame(TEXT, b"{}", mask=False),
        frame(TEXT, b"{}", reserved=4),
        frame(TEXT, b"{}", reserved=1),
        frame(0, b"{}"),
        frame(PING, b"x" * 126),
        frame(PING, b"x", fin=False),
        frame(CLOSE, b"x"),
        frame(CLOSE, (1005).to_bytes(2, "big")),
        frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"),
    ],
    ids=[
        "unmasked",
        "compressed",
        "reserved",
        "goes on with nothing",
        "long ping",
        "ping in pieces",
        "close of one byte",
        "close with a code that is none",
        "begins within another",
    ],
)
def test_a_frame_against_the_protocol_closes_with_1002(raw, wrong):
    raw.send(wrong)

    assert 1002 == raw.close_code()


@pytest.mark.ruling("X3")
def test_a_ping_between_two_fragments_is_answered_at_once(raw):
    raw.send(frame(TEXT, READ[:9], fin=False), frame(PING, b"here"))
    pong = raw.read()
    raw.send(frame(0, READ[9:]))

    assert (PONG, b"here") == pong
    assert (TEXT, True) == ((read := raw.read() or (0, b""))[0], b"errors" in read[1])


@pytest.mark.ruling("X3")
def test_a_request_may_come_byte_by_byte(raw):
    raw.send(*(bytes([byte]) for byte in frame(TEXT, READ)))

    assert TEXT == (raw.read() or (0, b""))[0]


@pytest.mark.ruling("X2")
def test_requests_that_come_in_one_piece_are_each_answered(raw):
    raw.send(b"".join(frame(TEXT, READ) for _ in range(300)))

    assert [TEXT] * 300 == [(raw.read() or (0, b""))[0] for _ in range(300)]


def test_a_close_is_answered_with_its_code(raw):
    raw.send(frame(CLOSE, (1000).to_bytes(2, "big")))

    assert 1000 == raw.close_code()


async def _held(live: LiveServer) -> tuple[int, int]:
    """Open sessions, and tasks."""
    return live.service.gateway.size, len(asyncio.all_tasks())


@pytest.mark.ruling("X3")
def test_no_bytes_whatever_fail_inside_or_leave_anything_behind(caplog):
    choose = random.Random(11)
    caplog.set_level(logging.WARNING)
    with live_server() as live:
        before = live.run(_held(live))
        codes = set()
        for _ in range(400):
            with Raw(live) as raw, suppress(ConnectionError):  # which the service may cut while it is still sent to
                raw.send(b"".join(_some(choose) for _ in range(choose.randrange(1, 8))))
                if choose.random() < 0.2:
                    continue  # hang up in the middle of whatever it is
                raw.send(frame(CLOSE, (1000).to_bytes(2, "big")))
                with suppress(OSError):
                    raw.socket.shutdown(socket.SHUT_WR)
                codes.add(raw.close_code())
        with Raw(live) as raw:
            assert 401 == raw.ask()
        with linked_game(live) as game:
            game.data("get", "state", {"state_id": "channel"})
        turns = 0
        while (after := live.run(_held(live))) != before and turns < 2_000:  # an end may still have to be seen
            turns += 1

    assert codes <= {1000, 1002, 1003, 1007, 1009, None}
    assert [] == [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert before == after


def _some(choose: random.Random) -> bytes:
    """A frame, mostly a wrong one, or no frame at all."""
    data = choose.choice([READ, b"", b"{}", b"\xff\xfe", b"\x00" * 200, choose.randbytes(choose.randrange(300))])
    kind = choose.randrange(8)
    if kind == 0:
        return choose.randbytes(choose.randrange(1, 60))
    if kind == 1:
        return frame(choose.randrange(16), data, reserved=choose.choice([0, 0, 1, 4]), mask=choose.random() < 0.8)
    if kind == 2:
        return frame(TEXT, data, size=choose.choice([0, 5, 126, 70_000, 3 * MIB, 2**40]))
    if kind == 3:
        return frame(TEXT, READ[:20], fin=False) + frame(0, READ[20:])
    if kind == 4:
        return frame(choose.choice([PING, PONG]), data[:125])
    if kind == 5:
        return frame(TEXT, READ)[: choose.randrange(1, 60)]
    return frame(TEXT, READ if kind == 6 else data)
