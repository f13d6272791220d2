"""`extcli listen` reconnects when the connection is lost, and reports the gap."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, takewhile
from urllib.parse import urlsplit

import pytest

from emulator.config.settings import Limits, Settings
from extcli.config.flags import Flags
from extcli.errors import CliError, ExitCode, Unreachable
from extcli.realtime.listener import Listener
from extcli.session import Session
from support.listen_process import ROUND, TIMEOUT, next_event, read_until
from support.process import ServerProcess, server_process
from support.service import live_server
from support.socket_client import request_pin

GAP = re.compile(r"gap: not connected for \d+\.\d s; events in between are lost")


@contextmanager
def restarted(url: str, *args: str) -> Iterator[ServerProcess]:
    """Start another service at the address of a stopped one."""
    with server_process(*args, EXTCLI_SERVE_PORT=str(urlsplit(url).port)) as served:
        assert served.url == url
        yield served


def test_it_reconnects_after_a_restart_and_reports_the_gap(extcli, listening):
    with server_process() as served:
        process = listening("-o", "jsonl", EXTCLI_URL=served.url)
        extcli("broadcast", "send", "round", "1", "--url", served.url)
        assert 1 == json.loads(next_event(process))["data"]
        served.stop(signal.SIGTERM)
    for number in (2, 3):
        with restarted(served.url):
            assert GAP.fullmatch(read_until(process, "gap"))
            extcli("broadcast", "send", "round", str(number), "--url", served.url)
            assert number == json.loads(next_event(process))["data"]


def test_it_reconnects_after_the_service_is_killed(extcli, listening):
    with server_process() as served:
        process = listening("-o", "plain", "--count", "1", EXTCLI_URL=served.url)
        served.stop(signal.SIGKILL)
    with restarted(served.url):
        assert GAP.fullmatch(read_until(process, "gap"))
        extcli("broadcast", "send", "round", "1", "--url", served.url)
        assert 0 == process.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_a_lost_connection_is_reported_at_once(listening, output):
    with server_process() as served:
        process = listening("-o", output, EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)
        assert read_until(process, "lost: ").endswith(
            "closed the connection: the service is stopping (close code 1001: the service stops); trying again"
        )


def test_an_outage_at_the_timeout_exits_3(listening):
    with server_process() as served:
        process = listening("--count", "1", "--timeout", "1s", EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)

    stdout, stderr = process.communicate(timeout=TIMEOUT)
    assert (3, b"") == (process.returncode, stdout)
    lost, gap, error, *_ = stderr.decode().splitlines()
    assert lost.startswith("lost: ")
    assert re.fullmatch(r"gap: not connected for \d\.\d s; events since then are lost", gap)
    assert "cannot connect to" in error


def test_a_link_that_a_restart_invalidates_ends_listening(extcli, listening):
    with server_process() as served:
        extcli("pin", "login", "--url", served.url, input=request_pin(served))
        process = listening(EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)
    with restarted(served.url):
        _, stderr = process.communicate(timeout=TIMEOUT)

    assert 4 == process.returncode
    assert "the stored link to channel 777 is no longer valid" in stderr.decode()


def test_a_link_that_survives_a_restart_is_used_again(extcli, listening, tmp_path):
    """Each connection stores a new refresh token for the next."""
    data = ("--data", f"sqlite:///{tmp_path}/data.db")
    with server_process(*data) as served:
        extcli("pin", "login", "--url", served.url, input=request_pin(served))
        process = listening("-o", "plain", "--count", "1", EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)
    with restarted(served.url, *data):
        assert GAP.fullmatch(read_until(process, "gap"))
        extcli("broadcast", "send", "round", "1", "--channel", "777", "--url", served.url)
        assert "round\t1" == next_event(process)


@pytest.mark.long
def test_a_listener_that_was_too_slow_reports_a_gap(listening):
    """Close code 1013."""
    with live_server(Settings(limits=Limits(outbox=16 * 1024))) as live:
        process = listening(EXTCLI_URL=live.url, stdout=subprocess.DEVNULL)
        process.send_signal(signal.SIGSTOP)
        for _ in takewhile(lambda _: live.service.hub.has_subscribers(ROUND), count()):
            live.run(live.service.publisher.publish(ROUND, "round", {"event": "round", "data": "x" * 200_000}))
        process.send_signal(signal.SIGCONT)

        assert GAP.fullmatch(read_until(process, "gap"))


def test_it_gives_up_when_every_connection_breaks_at_once():
    with live_server() as live:
        listener = Listener(Session(Flags(url=live.url)), [], give_up_after=0.5)
        listener.begin()
        ended = threading.Event()

        async def disconnect() -> None:
            if live.service.hub.has_subscribers(ROUND):
                live.service.gateway.close_all()

        def keep_disconnecting() -> None:
            while not ended.is_set():
                live.run(disconnect())

        thread = threading.Thread(target=keep_disconnecting)
        thread.start()
        try:
            with pytest.raises(CliError) as error:
                next(listener.updates(None))
        finally:
            ended.set()
            thread.join()

    assert ExitCode.UNREACHABLE == error.value.exit_code


def test_it_gives_up_when_the_service_stays_unreachable():
    with live_server() as live:
        listener = Listener(Session(Flags(url=live.url)), [], give_up_after=0.3)
        listener.begin()

    with pytest.raises(Unreachable, match="cannot connect to"):
        next(listener.updates(None))


def test_the_code_and_the_reason_of_a_close_are_reported(extcli, listening):
    with server_process() as served:
        process = listening(EXTCLI_URL=served.url)
        extcli("socket", "close", "--all", "--code", "1012", "--reason", "new version", "--url", served.url)

        assert read_until(process, "lost: ").endswith("(close code 1012: new version); trying again")


def test_a_change_of_identity_is_reported(extcli, listening):
    """Once a link is stored, it listens as the game of that link."""
    with server_process() as served:
        process = listening(EXTCLI_URL=served.url)
        extcli("pin", "login", "--url", served.url, input=request_pin(served))
        extcli("socket", "close", "--all", "--code", "1012", "--url", served.url)

        assert read_until(process, "now ") == (
            "now as broadcaster of channel 777, with the stored refresh token; "
            "it was as viewer of channel 1001, with a sandbox token"
        )
