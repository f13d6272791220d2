"""Messages in fragments: what they cost, how many there may be, and how long they may take (ruling X3)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from realtime.raw_sockets import BINARY, CLOSE, MIB, PING, PONG, READ, TEXT, Raw, frame, latest, ping, settle
from support.service import LiveServer, live_server
from support.socket_client import SocketClient

CONTINUATION = 0
MOST = 4_096
"""Frames of one message, with the control frames between them."""


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A service that has just started: its own pings, every 20 s, do not mix with those of the test."""
    with live_server() as live:
        yield live


def pieces(text: bytes, size: int) -> bytes:
    """Return a text message in frames of this size."""
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    last = len(parts) - 1
    return b"".join(frame(CONTINUATION if at else TEXT, each, fin=at == last) for at, each in enumerate(parts))


def is_answered(raw: Raw) -> bool:
    """Whether the next frame, apart from pings, is text."""
    while (read := raw.read()) is not None and read[0] == PING:
        pass
    return read is not None and read[0] == TEXT


def closed_with(raw: Raw) -> tuple[int, str]:
    """Read up to the close frame, and return its code and reason."""
    while (read := raw.read()) is not None:
        if read[0] == CLOSE:
            return int.from_bytes(read[1][:2], "big"), read[1][2:].decode()
    return 0, ""


def test_an_incomplete_message_takes_about_its_size_in_memory(live: LiveServer, game: SocketClient):
    text = b"x" * MIB
    game.socket.socket.sendall(frame(TEXT, text, fin=False) + frame(CONTINUATION, b"yy", fin=False) * 4_000)
    assert game.socket.ping().wait(10)  # the frames before have arrived

    assert MIB < sys.getsizeof(latest(live)._message) < 1.2 * MIB


@pytest.mark.parametrize(
    "filler",
    [
        frame(CONTINUATION, b"xx", fin=False),
        frame(CONTINUATION, b"", fin=False),
        frame(PING, b"here"),
        frame(PONG, b""),
        frame(CONTINUATION, b"", fin=False) + frame(PONG),
    ],
    ids=["of two bytes", "empty", "pings", "pongs", "empty, with pongs"],
)
@pytest.mark.parametrize("kind", [TEXT, BINARY])
def test_too_many_frames_of_one_message_close_the_connection_with_1009(game: SocketClient, kind: int, filler: bytes):
    with suppress(ConnectionError):
        game.socket.socket.sendall(frame(kind, b"{", fin=False) + filler * MOST)

    assert (1009, f"a message of over {MOST} frames") == (game.close_code(), game.socket.close_reason)


def test_as_many_frames_as_allowed_are_one_message(live: LiveServer):
    with Raw(live) as raw:
        empty = frame(CONTINUATION, b"", fin=False) * (MOST - 2)
        raw.send(frame(TEXT, READ[:9], fin=False), empty, frame(CONTINUATION, READ[9:]))

        assert is_answered(raw)
        assert 401 == raw.request_status()


def test_many_small_messages_and_pings_are_not_counted_as_one_message(live: LiveServer):
    with Raw(live) as raw:
        raw.send(frame(PONG) * 2 * MOST, pieces(READ, 1))
        assert is_answered(raw)
        raw.send(frame(PONG) * 2 * MOST, pieces(READ, 1))
        assert is_answered(raw)


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (frame(TEXT, b"{", fin=False), frame(PONG)),
        (frame(TEXT, b"{", fin=False), frame(CONTINUATION, b" ", fin=False)),
        (frame(TEXT, b"{", fin=False), frame(PING, b"here")),
        (frame(TEXT, b"", size=4_000), b"x"),
        (frame(CONTINUATION)[:1], b""),
    ],
    ids=["answers pings", "fragments", "pings", "one long frame", "part of a head"],
)
def test_a_message_that_is_not_complete_after_three_pings_closes_the_connection(
    live: LiveServer, begun: bytes, more: bytes
):
    with Raw(live) as raw:
        server_side = latest(live)
        raw.send(begun)
        settle(live)
        for _ in range(3):
            ping(live, server_side)
            raw.send(more)
            settle(live)

        code, reason = closed_with(raw)

    assert (1008, "a message did not arrive within 60 s") == (code, reason) or not more


def test_a_long_message_that_arrives_in_time_is_answered(live: LiveServer):
    with Raw(live) as raw:
        server_side = latest(live)
        for _ in range(4):
            raw.send(frame(TEXT, READ[:9], fin=False))
            settle(live)
            for _ in range(2):
                ping(live, server_side)
                assert (PING, b"") == raw.read()
                raw.send(frame(PONG))
                settle(live)
            raw.send(frame(CONTINUATION, READ[9:]))
            assert is_answered(raw)


def test_no_message_after_a_refused_one_is_handled(live: LiveServer):
    with Raw(live) as raw:
        raw.send(frame(TEXT, b"\xff") + frame(TEXT, READ) * 3)

        assert (1007, "not UTF-8") == closed_with(raw)
        settle(live)
    assert 0 == sum(each.request_count for each in live.service.gateway.admission.peers)
