"""`GET /_emulator/journal/stream`: entries as they happen, resumed from a mark, with gaps stated."""

from __future__ import annotations

import signal
import socket
import threading
from contextlib import ExitStack, suppress
from time import monotonic

import pytest

from emulator.core.config.settings import Settings
from support.journal import entries_of, following, journal_of
from support.process import server_process, wait_until
from support.service import CHANNEL, Client, LiveServer, RunningService, live_server
from support.waits import held


def test_the_stream_sends_the_selected_entries_as_they_happen(live: LiveServer, viewer):
    with following(live, path="/v1/e/vote") as lines:
        mark = next(lines)
        viewer().get("vote?id=one")
        first = next(lines)
        viewer().get("rank")
        viewer().get("vote?id=two")
        second = next(lines)

    assert first["number"] - 1 == mark["mark"]
    assert ["/v1/e/vote?id=one", "/v1/e/vote?id=two"] == [first["path"], second["path"]]
    assert [first, second] == entries_of(live, path="/v1/e/vote")


@pytest.mark.slow
def test_the_stream_resumes_after_a_mark(live: LiveServer, viewer):
    mark = journal_of(live)["mark"]
    for number in range(500):
        viewer().get(f"vote?id={number}")

    with following(live, since=mark, timeout=0) as lines:
        found = [each["path"] for each in lines if "path" in each]

    assert [f"/v1/e/vote?id={number}" for number in range(500)] == found


def test_a_mark_of_an_earlier_run_starts_at_the_beginning(live: LiveServer):
    live.reset()

    with following(live, since=10**9, timeout=0) as lines:
        assert [0, "POST /_emulator/reset"] == [
            line["mark"] if "mark" in line else line["endpoint"] for line in lines if "lost" not in line
        ]


def test_a_slow_reader_receives_the_number_of_missed_entries():
    with live_server(Settings(journal=100_000)) as live:
        voter = live.client("viewer", user="1", channel=CHANNEL)
        mark = journal_of(live)["mark"]
        for _ in range(300):
            voter.get("vote")

        with following(live, since=mark, timeout=0) as lines:
            first, lost, *rest = lines

        assert mark == first["mark"]
        assert 300 == lost["lost"] + len(rest)
        assert mark + lost["lost"] == lost["mark"] == rest[0]["number"] - 1


def test_a_client_that_leaves_ends_its_stream(live: LiveServer):
    before = held(live)
    with following(live) as lines:
        next(lines)
        assert before + 1 == held(live)

    assert wait_until(lambda: held(live) == before)


def test_dropping_a_namespace_ends_its_streams(live: LiveServer, stranger: Client):
    blue = RunningService(f"{live.url}/_ns/blue-stream")
    with following(blue) as lines:
        next(lines)

        stranger.delete("/_ns/blue-stream").raise_for_status()

        assert [] == [line for line in lines if "endpoint" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("reads", [True, False], ids=["readers", "clients that stopped reading"])
def test_a_stop_ends_fifty_event_streams_within_five_seconds(reads: bool):
    paths = ("/_emulator/ui/requests/events", "/_emulator/ui/overview/events", "/_emulator/journal/stream")
    with server_process() as served, ExitStack() as opened:
        host, port = served.url.removeprefix("http://").split(":")
        for number in range(50):
            reader = opened.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader.connect((host, int(port)))
            reader.sendall(f"GET {paths[number % 3]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            if reads:
                threading.Thread(target=_read_all, args=(reader,), daemon=True).start()
        wait_until(lambda: held(served) == 50)
        voter = served.client("viewer", user="1", channel=CHANNEL)
        for _ in range(200):
            voter.post("accumulate", json={"x": "y" * 200})
        began = monotonic()

        assert 0 == served.stop(signal.SIGTERM)

        assert monotonic() - began < 5


def _read_all(reader: socket.socket) -> None:
    with suppress(OSError):
        while reader.recv(65_536):
            pass


def test_each_run_of_the_service_has_another_name(live: LiveServer):
    runs = []
    with live_server() as other:
        for each in (live, live, other):
            with following(each, timeout=0) as lines:
                runs.append(next(lines)["run"])

    assert runs[0] == runs[1] != runs[2]
