"""Held requests of `GET /_emulator/wait`: what wakes them, what ends them, and how many there may be."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from emulator.core.clock import DAY
from emulator.http.long_requests import MAX_WAITS
from support.process import server_process, wait_until
from support.seeds import apply
from support.service import CHANNEL, Client, LiveServer, RunningService, live_server
from support.waits import LONG, Waiting, ask, held, waiting

NEVER = {"count": 1_000_000}
"""A condition of sockets that is never met."""


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A service that holds nothing else: streams of a shared one may end later than the tests that opened them."""
    with live_server() as live:
        yield live


@pytest.fixture
def waits() -> Iterator[Waiting]:
    with waiting() as threads:
        yield threads


def request(**query: object) -> bytes:
    """Return the bytes of a request that waits."""
    parameters = "&".join(f"{name}={value}" for name, value in ({"timeout": LONG} | query).items())
    return f"GET /_emulator/wait?{parameters} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@pytest.mark.parametrize("wakes", ["reset", "clock", "seed"])
def test_what_changes_all_data_wakes_a_wait(live: LiveServer, waits: Waiting, viewer, wakes: str):
    viewer().post("vote", json={"value": 1})
    future = waits.begin(live, "poll", count="=2" if wakes == "seed" else "=0")

    if wakes == "reset":
        live.reset()
    elif wakes == "clock":
        live.advance(8 * DAY)
    else:
        apply(live, polls=[{"id": "default", "votes": {"U8": 1, "U9": 1}}])

    assert future.result(10).json()["met"]


def test_a_client_that_leaves_ends_its_wait(live: LiveServer):
    with live.connect() as client:
        client.sendall(request(**{"for": "sockets"}, **NEVER))
        wait_until(lambda: held(live) == 1)

    assert wait_until(lambda: held(live) == 0)


@pytest.mark.parametrize("name", ["blue", "default"])
def test_dropping_a_namespace_ends_its_waits_and_allows_new_ones(live, stranger: Client, waits: Waiting, name: str):
    space = RunningService(f"{live.url}/_ns/{name}")
    future = waits.begin(space, "sockets", **NEVER)

    stranger.delete(f"/_ns/{name}")

    answer = future.result(10)
    assert (503, True) == (answer.status_code, "the namespace was dropped" in answer.json()["info"])
    assert 200 == ask(space, "poll", timeout=1).status_code


@pytest.mark.slow
def test_a_stop_ends_waits_and_event_streams_whether_or_not_they_are_read(waits: Waiting):
    paths = ("/_emulator/ui/requests/events", "/_emulator/ui/overview/events", "/_emulator/journal/stream")
    with server_process() as served, ExitStack() as opened:
        spaces = (served, RunningService(f"{served.url}/_ns/b"))
        futures = [waits.begin(each, "sockets", **NEVER) for each in spaces]
        before = held(served)
        for number in range(24):
            reader = opened.enter_context(served.connect())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader.sendall(f"GET {paths[number % 3]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            if number % 2:
                threading.Thread(target=_read_all, args=(reader,), daemon=True).start()
        wait_until(lambda: held(served) == before + 24)
        voter = served.client("viewer", user="1", channel=CHANNEL)
        for _ in range(200):
            voter.post("accumulate", json={"x": "y" * 200})

        assert 0 == served.stop(signal.SIGTERM)

        assert [503, 503] == [each.result(10).status_code for each in futures]


def _read_all(reader: socket.socket) -> None:
    with suppress(OSError):
        while reader.recv(65_536):
            pass


@pytest.mark.slow
def test_one_wait_more_than_the_limit_is_refused(live: LiveServer):
    sockets = [live.connect() for _ in range(MAX_WAITS)]
    try:
        for each in sockets:
            each.sendall(request(**{"for": "sockets"}, **NEVER))
        wait_until(lambda: held(live) == MAX_WAITS)

        refused = ask(live, "sockets", **NEVER)

        assert (429, "Too many waits", "1") == (
            refused.status_code,
            refused.json()["reason"],
            refused.headers["retry-after"],
        )
    finally:
        for each in sockets:
            each.close()
    assert wait_until(lambda: held(live) == 0)
