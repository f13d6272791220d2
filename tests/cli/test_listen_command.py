"""`extcli listen`: events as they arrive, and what becomes of them when the connection is lost."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, takewhile
from urllib.parse import urlsplit

import pytest

from emulator.config.settings import Limits, Settings
from emulator.engines.base import Key
from extcli.config.settings import Flags
from extcli.errors import CliError, Unreachable
from extcli.realtime.listener import Listener
from extcli.session import Session
from support.process import ServerProcess, server_process
from support.program import SECRET_BASE64
from support.service import CLIENT_ID, live_server
from support.socket_client import SocketClient, request_pin

WITHIN = 20
CHANNEL = "1001"
"""The one that commands are in unless told."""
ROUND = Key("event", CLIENT_ID, "round", CHANNEL)
GAP = re.compile(r"gap: not connected for \d+\.\d s; events in between are lost")

Process = subprocess.Popen[bytes]


@pytest.fixture
def listening(shell: Callable[..., Process]) -> Iterator[Callable[..., Process]]:
    """Start `extcli listen`; returns when it is ready."""
    processes: list[Process] = []

    def start(*args: str, stdout: int = subprocess.PIPE, **variables: str) -> Process:
        processes.append(shell("listen", *args, env=variables, stdout=stdout))
        assert until(processes[-1], "ready: ")
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=WITHIN)


def until(process: Process, start: str) -> str:
    """Read the listener's remarks up to one that starts so; returns it."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.decode().startswith(start):
            return line.decode().strip()
    raise AssertionError(f"it never said {start!r}")


def heard(process: Process) -> str:
    """The next line of data."""
    assert process.stdout is not None
    return process.stdout.readline().decode().rstrip("\n")


@contextmanager
def served_again(url: str, *args: str) -> Iterator[ServerProcess]:
    """Another service where one was."""
    with server_process(*args, EXTCLI_SERVE_PORT=str(urlsplit(url).port)) as served:
        assert served.url == url
        yield served


# What is printed


def test_events_are_printed_as_they_arrive(extcli, listening):
    process = listening("-o", "jsonl")

    for number in (1, 2):
        extcli("broadcast", "send", "round", f'{{"number": {number}}}')
        event = json.loads(heard(process))
        assert isinstance(event.pop("timestamp"), int)
        assert {"event": "round", "data": {"number": number}, "channel_id": CHANNEL, "scope": "channel"} == event


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("table", r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[.\dZ]+ +channel +a\\x1bb  \{\"n\":\[1\]\}"),
        ("plain", r"a\\x1bb\t\{\"n\":\[1\]\}"),
        ("json", r'\{"timestamp": \d+, "event": "a\\u001bb", "data": \{"n": \[1\]\}, .*\}'),
        ("jsonl", r'\{"timestamp":\d+,"event":"a\\u001bb","data":\{"n":\[1\]\},.*\}'),
    ],
)
def test_each_format_has_one_line_for_an_event(extcli, live, listening, form, line):
    """A deployment may send what our service would refuse: nothing of it reaches the terminal as a command."""
    process = listening("-o", form)
    told = {"event": "a\x1bb", "data": {"n": [1]}, "channel_id": CHANNEL, "scope": "channel"}
    live.run(live.service.publisher.publish(ROUND, "round", told))

    assert re.fullmatch(line, heard(process))


def test_only_the_events_that_are_named_are_heard_whatever_their_names(extcli, listening):
    process = listening("round", "state", "round", "-o", "plain")

    for event in ("other", "round", "state"):
        extcli("broadcast", "send", event, '"x"')

    assert ['round\t"x"', 'state\t"x"'] == [heard(process), heard(process)]


def test_a_viewer_hears_whispers_to_it(extcli, listening):
    process, other = listening("-o", "plain", "--as", "viewer:U7"), listening("-o", "plain")

    extcli("broadcast", "send", "hint", "1", "--to", "U7")
    extcli("broadcast", "send", "news", "2", "--extension-wide")

    assert ["hint\t1", "news\t2"] == [heard(process), heard(process)]
    assert "news\t2" == heard(other)


# When it ends


def test_it_ends_after_so_many_events(extcli, listening):
    process = listening("--count", "2", "-o", "plain")

    for number in range(3):
        extcli("broadcast", "send", "round", str(number))

    stdout, _ = process.communicate(timeout=WITHIN)
    assert (0, b"round\t0\nround\t1\n") == (process.returncode, stdout)


def test_too_few_events_in_time_are_exit_7(extcli):
    result = extcli("listen", "--count", "2", "--timeout", "200ms")

    assert (7, "") == (result.exit_code, result.stdout)
    assert "extcli: 0 of 2 events came in time" == result.stderr.splitlines()[1]


def test_without_a_count_the_timeout_is_a_plain_end(extcli):
    result = extcli("listen", "round", "--timeout", "200ms")

    assert (0, "") == (result.exit_code, result.stdout)
    assert "ready: round, as viewer of channel 1001, by a token of the sandbox\n" == result.stderr


def test_the_timeout_of_the_environment_is_that_of_requests(listening, extcli):
    process = listening("--count", "1", "-o", "plain", EXTCLI_TIMEOUT="300ms")

    extcli("listen", "--timeout", "600ms")
    extcli("broadcast", "send", "round", "1")

    assert 0 == process.wait(timeout=WITHIN)


def test_quiet_leaves_out_that_it_is_ready(extcli):
    assert "" == extcli("listen", "--timeout", "50ms", "-q").stderr


def test_an_interruption_is_exit_130(listening):
    process = listening()

    process.send_signal(signal.SIGINT)

    _, stderr = process.communicate(timeout=WITHIN)
    assert (130, b"") == (process.returncode, stderr)


def test_a_reader_that_has_had_enough_is_no_failure(extcli, listening):
    process = listening("-o", "plain")
    extcli("broadcast", "send", "round", "1")
    assert "round\t1" == heard(process)

    process.stdout.close()
    extcli("broadcast", "send", "round", "2")

    assert 0 == process.wait(timeout=WITHIN)
    process.stdout = None


def test_nobody_to_begin_with_is_exit_3_at_once(extcli):
    result = extcli("listen", "--url", "http://127.0.0.1:1")

    assert (3, "") == (result.exit_code, result.stdout)
    assert "nobody answers" in result.stderr


def test_an_event_that_cannot_be_is_refused(extcli):
    result = extcli("listen", "x" * 257)

    assert (4, "") == (result.exit_code, result.stdout)
    assert "1 to 256 printable characters" in result.stderr


def test_more_events_than_one_connection_may_follow_are_refused_with_what_to_do(extcli):
    with live_server(Settings(limits=Limits(topics=1))) as live:
        result = extcli("listen", "round", "hint", "--url", live.url)

    assert 4 == result.exit_code
    assert (
        "  the connection would have 6 subscriptions; the limit is 1\n"
        "  correct what is to be followed, or follow less over one connection\n"
    ) in result.stderr


@pytest.mark.parametrize("path", ["", f"/0.2.0/{CLIENT_ID}"], ids=["when it authenticates", "at the handshake"])
def test_more_connections_than_the_service_takes_are_refused_with_what_to_do(extcli, path):
    with live_server(Settings(limits=Limits(sockets=1))) as live, SocketClient(live):
        socket = {"EXTCLI_WS_URL": live.url.replace("http", "ws", 1) + path} if path else {}
        result = extcli("listen", "--url", live.url, env=socket)

    assert 4 == result.exit_code
    assert "429 Too Many Requests" in result.stderr
    assert result.stderr.endswith("  wait a little, or end connections that are not needed\n")


# Who listens


def test_a_kept_link_is_listened_by(extcli, live):
    extcli("pin", "login", input=request_pin(live))

    result = extcli("listen", "--timeout", "50ms")

    assert "ready: all events, as broadcaster of channel 777, by the refresh token that is kept\n" == result.stderr
    assert (
        "as viewer of channel 777" in extcli("listen", "--timeout", "50ms", "--as", "viewer", "--channel", "777").stderr
    )


def test_production_is_listened_to_with_the_extension_s_secret(extcli, production):
    result = extcli("listen", "--timeout", "50ms", "--url", production.url, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert (0, "ready: all events, as viewer of channel 1001, by a token signed here\n") == (
        result.exit_code,
        result.stderr,
    )


# Lost connections


def test_after_a_restart_it_listens_again_and_names_the_gap(extcli, listening):
    with server_process() as served:
        process = listening("-o", "jsonl", EXTCLI_URL=served.url)
        extcli("broadcast", "send", "round", "1", "--url", served.url)
        assert 1 == json.loads(heard(process))["data"]
        served.stop(signal.SIGTERM)
    for number in (2, 3):
        with served_again(served.url):
            assert GAP.fullmatch(until(process, "gap"))
            extcli("broadcast", "send", "round", str(number), "--url", served.url)
            assert number == json.loads(heard(process))["data"]


def test_a_service_that_dies_without_a_word_is_a_gap_too(extcli, listening):
    with server_process() as served:
        process = listening("-o", "plain", "--count", "1", EXTCLI_URL=served.url)
        served.stop(signal.SIGKILL)
    with served_again(served.url):
        assert GAP.fullmatch(until(process, "gap"))
        extcli("broadcast", "send", "round", "1", "--url", served.url)
        assert 0 == process.wait(timeout=WITHIN)


@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_a_lost_connection_is_told_at_once(listening, output):
    with server_process() as served:
        process = listening("-o", output, EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)
        assert until(process, "lost: ").endswith("closed the connection: the service stops; trying again")


def test_a_service_that_is_away_when_the_time_is_up_is_exit_3(listening):
    with server_process() as served:
        process = listening("--count", "1", "--timeout", "1s", EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)

    stdout, stderr = process.communicate(timeout=WITHIN)
    assert (3, b"") == (process.returncode, stdout)
    lost, gap, error, *_ = stderr.decode().splitlines()
    assert lost.startswith("lost: ")
    assert re.fullmatch(r"gap: not connected for \d\.\d s; events since are lost", gap)
    assert "nobody answers" in error


def test_a_link_that_is_dead_after_the_restart_ends_it(extcli, listening):
    """It would be refused for ever."""
    with server_process() as served:
        extcli("pin", "login", "--url", served.url, input=request_pin(served))
        process = listening(EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)
    with served_again(served.url):
        _, stderr = process.communicate(timeout=WITHIN)

    assert 4 == process.returncode
    assert "the kept link to channel 777 is dead" in stderr.decode()


def test_a_link_that_outlives_the_restart_is_listened_by_again(extcli, listening, tmp_path):
    """Each connection has a new refresh token, which is kept for the next."""
    data = ("--data", f"sqlite:///{tmp_path}/data.db")
    with server_process(*data) as served:
        extcli("pin", "login", "--url", served.url, input=request_pin(served))
        process = listening("-o", "plain", "--count", "1", EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)
    with served_again(served.url, *data):
        assert GAP.fullmatch(until(process, "gap"))
        extcli("broadcast", "send", "round", "1", "--channel", "777", "--url", served.url)
        assert "round\t1" == heard(process)


def test_a_listener_that_was_too_slow_says_so_by_a_gap(listening):
    """Close code 1013."""
    with live_server(Settings(limits=Limits(outbox=16 * 1024))) as live:
        process = listening(EXTCLI_URL=live.url, stdout=subprocess.DEVNULL)
        process.send_signal(signal.SIGSTOP)
        for _ in takewhile(lambda _: live.service.hub.has_subscribers(ROUND), count()):
            live.run(live.service.publisher.publish(ROUND, "round", {"event": "round", "data": "x" * 200_000}))
        process.send_signal(signal.SIGCONT)

        assert GAP.fullmatch(until(process, "gap"))


def test_patience_ends_where_each_connection_breaks_off_again():
    with live_server() as live:
        listener = Listener(Session(Flags(url=live.url)), [], give_up_after=0.5)
        listener.begin()
        ended = threading.Event()

        async def dismiss() -> None:
            if live.service.hub.has_subscribers(ROUND):
                live.service.gateway.close_all()

        def keep_dismissing() -> None:
            while not ended.is_set():
                live.run(dismiss())

        thread = threading.Thread(target=keep_dismissing)
        thread.start()
        try:
            with pytest.raises(CliError) as error:
                next(listener.heard(None))
        finally:
            ended.set()
            thread.join()

    assert Unreachable.exit_code == error.value.exit_code


def test_patience_ends_where_nobody_is_any_more():
    with live_server() as live:
        listener = Listener(Session(Flags(url=live.url)), [], give_up_after=0.3)
        listener.begin()

    with pytest.raises(Unreachable, match="nobody answers"):
        next(listener.heard(None))
