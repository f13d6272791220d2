"""WebSocket frames, malformed ones and fragments included, as raw bytes (ruling X3)."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from realtime.raw_sockets import CLOSE, MIB, PING, PONG, READ, TEXT, Raw, frame
from realtime.resources import leak_checked_server
from support.service import LiveServer
from support.socket_client import linked_game


@pytest.fixture
def raw(live: LiveServer) -> Iterator[Raw]:
    with Raw(live) as raw:
        yield raw


def test_a_frame_length_over_2_mib_closes_with_1009_at_once(raw):
    raw.send(frame(TEXT, size=2 * MIB + 1))

    assert 1009 == raw.close_code()


def test_fragments_over_2_mib_in_total_close_with_1009(raw):
    raw.send(frame(TEXT, b" " * MIB, fin=False), frame(0, size=MIB + 1))

    assert 1009 == raw.close_code()


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 15])
def test_an_unknown_opcode_closes_with_1002(raw, opcode):
    raw.send(frame(opcode, b"x"))

    assert 1002 == raw.close_code()


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
        "continuation of nothing",
        "long ping",
        "fragmented ping",
        "close of one byte",
        "close with a reserved code",
        "message inside another",
    ],
)
def test_a_protocol_violation_closes_with_1002(raw, wrong):
    raw.send(wrong)

    assert 1002 == raw.close_code()


def test_a_ping_between_fragments_gets_a_pong_at_once(raw):
    raw.send(frame(TEXT, READ[:9], fin=False), frame(PING, b"here"))
    pong = raw.read()
    raw.send(frame(0, READ[9:]))

    assert (PONG, b"here") == pong
    assert (TEXT, True) == ((read := raw.read() or (0, b""))[0], b"errors" in read[1])


def test_a_request_may_come_byte_by_byte(raw):
    raw.send(*(bytes([byte]) for byte in frame(TEXT, READ)))

    assert TEXT == (raw.read() or (0, b""))[0]


def test_a_close_gets_a_response_with_its_code(raw):
    raw.send(frame(CLOSE, (1000).to_bytes(2, "big")))

    assert 1000 == raw.close_code()


def test_a_binary_message_closes_with_1003_after_pending_replies(game):
    game.send("get", "state", {"state_id": "channel"})
    game.socket.send(b"\x00")

    assert "data" in game.reply()
    assert 1003 == game.close_code()


def test_a_message_of_2_mib_is_accepted(game):
    game.socket.send(READ.decode().ljust(2 * MIB))

    assert "errors" in game.message()


@pytest.mark.parametrize("text", [b"\xff", b'{"action":"\xc3"}', b"\xed\xa0\x80", b"\xf5\x80\x80\x80"])
def test_invalid_utf_8_closes_with_1007(game, text):
    game.socket.send(text, text=True)

    assert 1007 == game.close_code()


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_fragmented_message_is_one_message(game, size):
    data = {"state_id": "channel", "state": {"a": "é\U0001f600"}}
    request = {"action": "set", "params": {"request_id": 7, "target": "state"}, "data": data}
    text = json.dumps(request, ensure_ascii=False).encode()

    game.socket.send([text[at : at + size] for at in range(0, len(text), size)], text=True)
    reply = game.message()

    assert (7, {"a": "é\U0001f600"}) == (reply["meta"]["request_id"], reply["data"]["state"])


def test_random_bytes_cause_no_failure_and_no_leak():
    choose = random.Random(11)
    codes = set()
    with leak_checked_server() as live:
        for _ in range(200):
            with Raw(live) as raw, suppress(ConnectionError):  # the service may disconnect while we send
                raw.send(b"".join(random_bytes(choose) for _ in range(choose.randrange(1, 8))))
                if choose.random() < 0.2:
                    continue  # disconnect in the middle of a frame
                raw.send(frame(CLOSE, (1000).to_bytes(2, "big")))
                with suppress(OSError):
                    raw.socket.shutdown(socket.SHUT_WR)
                codes.add(raw.close_code())
        with Raw(live) as raw:
            assert 401 == raw.request_status()
        with linked_game(live) as game:
            game.data("get", "state", {"state_id": "channel"})

    assert codes <= {1000, 1002, 1003, 1007, 1009, None}


def random_bytes(choose: random.Random) -> bytes:
    """A frame, mostly malformed, or random bytes."""
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
