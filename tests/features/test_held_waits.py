"""Held requests of `GET /_emulator/wait`: what wakes them, what ends them, and how many there may be."""

from __future__ import annotations

import gc
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.clock import DAY
from emulator.http.long_requests import MAX_HELD, HeldRequests
from support.process import server_process, wait_until
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService, live_server
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


def test_a_held_wait_returns_once_its_condition_becomes_true(live: LiveServer, waits: Waiting, viewer):
    future = waits.begin(live, "poll", count=2)
    viewer("1").post("vote", json={"value": 1})
    assert not future.done()

    viewer("2").post("vote", json={"value": 1})

    assert {"count": 2} == future.result(10).json()["found"]


def test_a_reset_wakes_a_wait(live: LiveServer, waits: Waiting, viewer):
    viewer().post("vote", json={"value": 1})
    future = waits.begin(live, "poll", count="=0")

    live.reset()

    assert future.result(10).json()["met"]


def test_a_move_of_the_clock_wakes_a_wait(live: LiveServer, waits: Waiting, viewer):
    viewer().post("vote", json={"value": 1})
    future = waits.begin(live, "poll", count="=0")

    live.advance(8 * DAY)

    assert future.result(10).json()["met"]


def test_a_seed_wakes_a_wait(live: LiveServer, stranger: Client, waits: Waiting):
    future = waits.begin(live, "store", "channel_state", path="/round", equals="4")

    stores = [{"store": "channel_state", "data": {"round": 4}}]
    seed = {"extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL, "stores": stores}
    stranger.put("/_emulator/seed", json=seed).raise_for_status()

    assert future.result(10).json()["met"]


def test_the_timeout_is_real_time_though_the_clock_is_frozen(live: LiveServer):
    live.freeze()

    assert not ask(live, "poll", timeout=20).json()["met"]


def test_a_client_that_leaves_ends_its_wait(live: LiveServer):
    with live.connect() as client:
        client.sendall(request(**{"for": "sockets"}, **NEVER))
        wait_until(lambda: held(live) == 1)

    assert wait_until(lambda: held(live) == 0)


def test_dropping_a_namespace_ends_its_waits(live: LiveServer, stranger: Client, waits: Waiting):
    future = waits.begin(RunningService(f"{live.url}/_ns/blue"), "sockets", **NEVER)

    stranger.delete("/_ns/blue")

    answer = future.result(10)
    assert (503, "Service Unavailable") == (answer.status_code, answer.json()["reason"])
    assert "the namespace was dropped" in answer.json()["info"]


def test_dropping_the_default_namespace_ends_its_waits_and_allows_new_ones(
    live: LiveServer, stranger: Client, waits: Waiting
):
    future = waits.begin(live, "sockets", **NEVER)

    stranger.delete("/_ns/default")

    assert [503, 200] == [future.result(10).status_code, ask(live, "poll", timeout=1).status_code]


@pytest.mark.slow
def test_a_stop_ends_all_waits_at_once(waits: Waiting):
    with server_process() as served:
        futures = [
            waits.begin(service, "sockets", **NEVER) for service in (served, RunningService(f"{served.url}/_ns/b"))
        ]
        started = time.monotonic()

        code = served.stop(signal.SIGTERM)

        statuses = [each.result(10).status_code for each in futures]
        assert (0, [503, 503]) == (code, statuses)
        assert time.monotonic() - started < 3, "it waited for the waits to be answered"


@pytest.mark.slow
def test_one_wait_more_than_the_limit_is_refused(live: LiveServer):
    sockets = [live.connect() for _ in range(MAX_HELD)]
    try:
        for each in sockets:
            each.sendall(request(**{"for": "sockets"}, **NEVER))
        wait_until(lambda: held(live) == MAX_HELD)

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


def test_one_stream_more_than_the_limit_is_refused(live: LiveServer):
    live.service.dispatcher.held = HeldRequests(2)
    streams = [live.connect() for _ in range(2)]
    try:
        for each in streams:
            each.sendall(b"GET /_emulator/ui/overview/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert each.recv(65_536).startswith(b"HTTP/1.1 200 ")

        refused = Client().get(f"{live.url}/_emulator/ui/polls/events")

        assert (2, 429) == (held(live), refused.status_code)
        assert "2 requests wait already" in refused.text
        assert 200 == Client().get(f"{live.url}/_emulator/live").status_code
    finally:
        for each in streams:
            each.close()
    assert wait_until(lambda: held(live) == 0)


@pytest.mark.slow
def test_200_held_waits_use_no_processor_time(live: LiveServer):
    sockets = [live.connect() for _ in range(200)]
    try:
        for each in sockets:
            each.sendall(request(**{"for": "poll", "client_id": CLIENT_ID, "id": "quiet"}))
        wait_until(lambda: held(live) == 200)
        gc.disable()  # one collection of all that the tests hold takes longer than the limit

        def share() -> float:
            """Return the share of processor time during half a second. Other threads of this process only add to it."""
            began, used = time.monotonic(), time.process_time()
            ask(live, "sockets", timeout=500, **NEVER)
            return (time.process_time() - used) / (time.monotonic() - began)

        assert min(share() for _ in range(4)) < 0.02
    finally:
        gc.enable()
        for each in sockets:
            each.close()
    wait_until(lambda: held(live) == 0)


@pytest.mark.slow
def test_a_wait_on_one_worker_sees_what_another_writes(tmp_path: Path, waits: Waiting):
    with server_process("--workers", "2", "--data", f"sqlite:///{tmp_path}/data.db") as served:
        for number in range(8):
            voter = served.client("viewer", user="1", channel=CHANNEL)
            with served.connect() as client:
                client.sendall(request(**{"for": "poll", "client_id": CLIENT_ID, "id": f"p{number}"}))

                answer = voter.post(f"vote?id=p{number}", json={"value": 1})

                _, _, body = client.recv(65_536).partition(b"\r\n\r\n")
            assert json.loads(body)["met"]
            assert "x-emulator-mark" not in answer.headers

        refused = [ask(served, "poll", since="1"), ask(served, "broadcast", "a"), ask(served, "sockets")]
        assert [403, 403, 403] == [each.status_code for each in refused]
