"""How connections close whose client does not read, or whose service stops (rulings B4, X3; operations, Starting)."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

from emulator.core.config.settings import Limits, Settings
from support.process import server_process
from support.service import CHANNEL, CLIENT_ID, LiveServer, RunningService, live_server
from support.socket_client import TIMEOUT, SocketClient, linked_game, request_pin

KIB = 1024
OUTBOX = 16 * KIB
BIG = {"text": "x" * 32 * KIB}
MASK = b"\0\0\0\0"
"""A mask that leaves bytes unchanged."""


@pytest.fixture
def small() -> Iterator[LiveServer]:
    """A service with an outbox of 16 KiB."""
    with live_server(Settings(limits=Limits(outbox=OUTBOX))) as live:
        yield live


class NeverReads:
    """A linked game on a TCP connection with small buffers. It reads nothing until `close_code`."""

    def __init__(self, live: LiveServer, target: str = "state") -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        self._socket.settimeout(TIMEOUT)
        self._socket.connect(("127.0.0.1", urlsplit(live.url).port or 0))
        self._socket.sendall(
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        self._stream = self._socket.makefile("rb")
        while self._stream.readline() != b"\r\n":
            pass
        credentials = {"client_id": CLIENT_ID, "pin": request_pin(live)}
        self.send({"action": "authenticate", "data": credentials})
        self.send({"action": "subscribe", "params": {"target": target}, "data": {"topic_id": "channel"}})
        assert [0x81, 0x81] == [self._frame()[0] for _ in range(2)]

    def send(self, request: object) -> None:
        text = json.dumps(request).encode()
        self._socket.sendall(bytes([0x81, 0xFE]) + len(text).to_bytes(2, "big") + MASK + text)

    def ping(self, times: int) -> None:
        self._socket.sendall((bytes([0x89, 0x80 | 125]) + MASK + b"x" * 125) * times)

    def close_code(self) -> int | None:
        """Read up to the close frame and return its code; `None` if there is none."""
        with suppress(ConnectionError):
            while (frame := self._frame())[0]:
                if frame[0] == 0x88:
                    return int.from_bytes(frame[1][:2], "big")
        return None

    def message(self) -> Any:
        """Read the next message."""
        return json.loads(self._frame()[1])

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _frame(self) -> tuple[int, bytes]:
        head = self._stream.read(2)
        if len(head) < 2:
            return 0, b""
        size = head[1]
        if size > 125:
            size = int.from_bytes(self._stream.read(2 if size == 126 else 8), "big")
        return head[0], self._stream.read(size)


@pytest.fixture
def slow(small: LiveServer) -> Iterator[NeverReads]:
    slow = NeverReads(small)
    yield slow
    slow.close()


def write(live: RunningService, number: int) -> None:
    broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    broadcaster.post("channel_state", json={**BIG, "n": number}).raise_for_status()


def is_closing(live: LiveServer) -> bool:
    """Whether the service has sent a close that the client has not answered."""
    return any(each.connection._protocol.state.name == "CLOSING" for each in list(live.service.gateway.admission.peers))


def test_an_overflowing_outbox_closes_the_connection_with_1013(small, slow):
    numbers = count()
    while not is_closing(small):
        write(small, next(numbers))

    assert 1013 == slow.close_code()
    assert next(numbers) > 1


def test_a_slow_reader_does_not_delay_other_subscribers(small, slow):
    with linked_game(small) as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        numbers = count()
        while not is_closing(small):
            write(small, number := next(numbers))
            assert number == game.update()["data"]["state"]["n"]
        code = slow.close_code()

        write(small, number := next(numbers))

        assert (1013, number) == (code, game.update()["data"]["state"]["n"])


def test_a_client_that_sends_but_never_reads_is_closed_with_1013(small, slow):
    write(small, 0)

    with suppress(ConnectionError):
        for _ in range(3_000):
            slow.send({"action": "get", "params": {"target": "state"}, "data": {"state_id": "channel"}})
            if len(small.service.gateway.admission) == 0:
                break

    assert slow.close_code() in (1013, None)
    with linked_game(small) as game:
        assert 0 == game.data("get", "state", {"state_id": "channel"})["state"]["n"]


def test_a_reader_that_keeps_up_receives_any_amount(small):
    with linked_game(small) as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        for number in range(100):
            write(small, number)
            game.update()

        assert 99 == game.data("get", "state", {"state_id": "channel"})["state"]["n"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopping_service_closes_its_sockets_with_1001(number):
    with server_process() as served:
        with linked_game(served) as game, SocketClient(served) as unlinked:
            served.process.send_signal(number)

            assert [1001, 1001] == [game.close_code(), unlinked.close_code()]
        assert 0 == served.process.wait(TIMEOUT)


def test_the_outbox_of_a_client_that_pings_but_never_reads_is_bounded(small: LiveServer):
    slow = NeverReads(small)
    (session,) = small.service.gateway.admission.peers

    with suppress(ConnectionError, TimeoutError):
        for _ in range(200):
            slow.ping(1_000)

    assert session.connection._transport.get_write_buffer_size() <= 512 * KIB


@pytest.fixture
def slow_stream(small: LiveServer) -> Iterator[NeverReads]:
    """A game that follows the datastream and reads nothing."""
    slow = NeverReads(small, "datastream")
    yield slow
    slow.close()


def unread(live: LiveServer) -> int:
    """Return the unread bytes of the oldest connection."""
    return next(iter(live.service.gateway.admission.peers)).connection.unread


def fill_half(live: LiveServer) -> int:
    """Post events until half of the outbox of the oldest connection is full; return the next number."""
    viewer = live.client("viewer", user="1", channel=CHANNEL)
    for number in count():
        viewer.post("datastream", json=[number, "x" * 4_000]).raise_for_status()
        if unread(live) > OUTBOX // 2:
            return number + 1
    raise AssertionError


def numbers(game: SocketClient, last: int) -> list[int]:
    """Return the numbers of the events that a game receives, up to the last one."""
    received = [-1]
    while received[-1] != last:
        received += [each["event"][0] for each in game.update()["data"]["events"]]
    return received[1:]


def test_a_game_that_does_not_read_loses_events_and_stays_open(small, slow_stream):
    viewer = small.client("viewer", user="1", channel=CHANNEL)
    with linked_game(small) as game:
        game.data("subscribe", "datastream", {"topic_id": ""})
        first = fill_half(small)

        for number in range(first, first + 50):
            viewer.post("datastream", json=[number, "x" * 4_000]).raise_for_status()

        assert list(range(first + 50)) == numbers(game, first + 49)
    assert OUTBOX // 2 < unread(small) <= OUTBOX
    received = [slow_stream.message()["data"]["events"][0]["event"][0] for _ in range(first)]
    assert list(range(first)) == received
    viewer.post("datastream", json=["again"]).raise_for_status()
    assert ["again"] == slow_stream.message()["data"]["events"][0]["event"]


def test_events_leave_room_for_other_updates(small, slow_stream):
    slow_stream.send({"action": "subscribe", "params": {"target": "state"}, "data": {"topic_id": "channel"}})
    fill_half(small)

    broadcaster = small.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    broadcaster.post("channel_state", json={"text": "x" * 2_000}).raise_for_status()

    assert 1 == len(small.service.gateway.admission)
    messages = iter(slow_stream.message, None)
    assert "channel" in (each["meta"]["target"] for each in messages)


def test_a_stalled_game_loses_events_and_stays_open(small: LiveServer):
    with linked_game(small) as game:
        game.data("subscribe", "datastream", {"topic_id": ""})
        connection = next(iter(small.service.gateway.admission.peers)).connection

        async def act(name: str) -> None:
            getattr(connection, name)()

        small.run(act("stall"))
        first = fill_half(small)
        for number in range(first, first + 10):
            viewer = small.client("viewer", user="1", channel=CHANNEL)
            viewer.post("datastream", json=[number, "x" * 4_000]).raise_for_status()
        small.run(act("release"))

        assert list(range(first)) == numbers(game, first - 1)
        assert game.no_update()


def test_events_held_back_during_a_request_count_too(small: LiveServer):
    with linked_game(small) as game:
        game.data("subscribe", "datastream", {"topic_id": ""})
        (session,) = small.service.gateway.admission.peers

        async def act(*, is_busy: bool) -> None:
            session._busy = is_busy
            session._flush_held()

        small.run(act(is_busy=True))
        viewer = small.client("viewer", user="1", channel=CHANNEL)
        for number in range(20):
            viewer.post("datastream", json=[number, "x" * 4_000]).raise_for_status()
        small.run(act(is_busy=False))

        assert [0, 1] == numbers(game, 1)
        assert game.no_update()
