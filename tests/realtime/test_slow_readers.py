"""How connections close whose client does not read, or whose service stops (rulings B4, X3; operations, Starting)."""

from __future__ import annotations

import json
import random
import signal
import socket
import string
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

from emulator.core.settings import Limits, Settings
from realtime.raw_sockets import PING, TEXT, Raw, frame
from support.process import server_process
from support.pusher_client import PusherClient, pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID, LiveServer, RunningService, live_server
from support.socket_client import TIMEOUT, SocketClient, linked_game, request_pin

KIB = 1024
OUTBOX = 16 * KIB
BIG = {"text": "x" * 32 * KIB}


@pytest.fixture
def small() -> Iterator[LiveServer]:
    """A service with an outbox of 16 KiB."""
    with live_server(Settings(limits=Limits(outbox=OUTBOX))) as live:
        yield live


class NeverReads(Raw):
    """A linked game on a TCP connection with small buffers. It reads nothing until `close_code`."""

    def __init__(self, live: LiveServer, target: str = "state") -> None:
        super().__init__(live, receive_buffer=4 * KIB)
        self.request("authenticate", "", client_id=CLIENT_ID, pin=request_pin(live))
        self.request("subscribe", target, topic_id="channel")
        assert ["data", "data"] == [next(reversed(self.message())) for _ in range(2)]

    def request(self, action: str, target: str, **data: str) -> None:
        request = {"action": action, "params": {"target": target}, "data": data}
        self.send(frame(TEXT, json.dumps(request).encode()))

    def message(self) -> Any:
        """Read the next message."""
        read = self.read()
        assert read is not None
        return json.loads(read[1])


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


def test_a_slow_reader_is_closed_with_1013_and_does_not_delay_others(small, slow):
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
            slow.request("get", "state", state_id="channel")
            if len(small.service.gateway.admission) == 0:
                break

    assert slow.close_code() in (1013, None)
    with linked_game(small) as game:
        assert 0 == game.data("get", "state", {"state_id": "channel"})["state"]["n"]


def test_a_stopping_service_closes_its_sockets_with_1001():
    with server_process() as served:
        with linked_game(served) as game, SocketClient(served) as unlinked, subscribed_page(served) as page:
            served.process.send_signal(signal.SIGTERM)

            assert [1001] * 3 == [each.close_code() for each in (game, unlinked, page)]
        assert 0 == served.process.wait(TIMEOUT)


def test_the_outbox_of_a_client_that_pings_but_never_reads_is_bounded(small: LiveServer):
    slow = NeverReads(small)
    (session,) = small.service.gateway.admission.peers

    with suppress(ConnectionError, TimeoutError):
        for _ in range(200):
            slow.send(frame(PING, b"x" * 125) * 1_000)

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
    slow_stream.request("subscribe", "state", topic_id="channel")
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


def incompressible(number: int) -> str:
    """4,006 characters that are sent uncompressed, different for each number."""
    return f"{number:06}" + "".join(random.Random(number).choices(string.ascii_letters, k=4_000))


def page_that_never_reads(live: LiveServer) -> PusherClient:
    """A page with small buffers that reads nothing until its close code is read."""
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    small.settimeout(TIMEOUT)
    small.connect(("127.0.0.1", urlsplit(live.url).port or 0))
    return PusherClient(live, sock=small, max_queue=1).subscribe(pusher_channel())


def test_a_slow_page_is_closed_with_1013_and_does_not_delay_others(small):
    with page_that_never_reads(small) as slow, subscribed_page(small) as page:
        admin = small.client("admin", channel=CHANNEL)
        numbers = count()
        while not is_closing(small):
            admin.post("broadcast", json={"data": incompressible(number := next(numbers))}).raise_for_status()
            assert [incompressible(number)] == [each.data for each in page.broadcasts()]

        assert 1013 == slow.close_code()
        admin.post("broadcast", json={"data": "after"}).raise_for_status()
        assert ["after"] == [each.data for each in page.broadcasts()]
