"""`extcli listen`: its output, when it ends, and the identity it uses."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from support.listen_process import CHANNEL, ROUND, TIMEOUT, next_event, read_until
from support.process import ServerProcess, server_process
from support.program import SECRET_BASE64
from support.socket_client import request_pin

# Output


FORMS = {
    "table": r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[.\dZ]+ +channel +a\\x1bb  \{\"n\":\[1\]\}",
    "plain": r"a\\x1bb\t\{\"n\":\[1\]\}",
    "json": r'\{"timestamp": \d+, "event": "a\\u001bb", "data": \{"n": \[1\]\}, .*\}',
    "jsonl": r'\{"timestamp":\d+,"event":"a\\u001bb","data":\{"n":\[1\]\},.*\}',
}


def test_every_format_prints_an_event_on_one_safe_line(live, listening):
    """A deployment may send control characters that our service refuses."""
    processes = [listening("-o", form) for form in FORMS]
    update = {"event": "a\x1bb", "data": {"n": [1]}, "channel_id": CHANNEL, "scope": "channel"}
    live.run(live.service.publisher.publish(ROUND, "round", update))

    for line, process in zip(FORMS.values(), processes, strict=True):
        assert re.fullmatch(line, next_event(process))


def test_only_the_named_events_of_the_caller_are_printed_and_counted(extcli, listening):
    """The variable of the timeout does not end it."""
    named = listening("round", "state", "round", "-o", "plain", "--count", "3", EXTCLI_TIMEOUT="2s")
    viewer = listening("-o", "plain", "--as", "viewer:U7")
    extcli("listen", "--timeout", "2100ms", exits=0)

    extcli("broadcast", "send", "hint", "1", "--to", "U7")
    for event in ("other", "round", "state"):
        extcli("broadcast", "send", event, '"x"')
    extcli("broadcast", "send", "round", "2", "--extension-wide")

    assert ('round\t"x"\nstate\t"x"\nround\t2\n', "") == named.communicate(TIMEOUT)
    assert 0 == named.returncode
    assert ["hint\t1", 'other\t"x"'] == [next_event(viewer), next_event(viewer)]


# The end


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--count 2 --timeout 200ms", 7),
        ("round --timeout 200ms", 0),
        (f"{'x' * 257}", 4),
        ("--url http://127.0.0.1:1", 3),
    ],
)
def test_listen_ends_without_an_event(extcli, words, code):
    extcli("listen", *words.split(), fails=code)


# Identity


def test_a_stored_link_is_the_default_identity_and_a_secret_authenticates(extcli, live, production):
    extcli("pin", "login", input=request_pin(live))

    for options, identity in (
        ((), "broadcaster of channel 777"),
        (("--as", "viewer"), "viewer of channel 1001"),
        (("--url", production.url), "with a self-signed token"),
    ):
        env = {"EXTCLI_SECRET": SECRET_BASE64} if "--url" in options else {}
        assert identity in extcli("listen", "--timeout", "100ms", *options, env=env, exits=0).stderr


# `extcli listen` reconnects when the connection is lost, and reports the gap


GAP = re.compile(r"gap: not connected for \d+\.\d s; events in between are lost")


@contextmanager
def restarted(url: str, *args: str) -> Iterator[ServerProcess]:
    """Start another service at the address of a stopped one."""
    with server_process(*args, EXTCLI_SERVE_PORT=str(urlsplit(url).port)) as served:
        assert served.url == url
        yield served


def test_listen_reconnects_after_a_restart_and_reports_the_gap(extcli, listening):
    with server_process() as served:
        process = listening("-o", "jsonl", EXTCLI_URL=served.url)
        extcli("broadcast", "send", "round", "1", "--url", served.url)
        assert 1 == json.loads(next_event(process))["data"]
        served.stop(signal.SIGTERM)
        assert "close code 1001" in read_until(process, "lost: ")
    for number in (2, 3):
        with restarted(served.url):
            assert GAP.fullmatch(read_until(process, "gap"))
            extcli("broadcast", "send", "round", str(number), "--url", served.url)
            assert number == json.loads(next_event(process))["data"]


def test_an_outage_at_the_timeout_exits_3(listening):
    with server_process() as served:
        process = listening("--count", "1", "--timeout", "2s", EXTCLI_URL=served.url)
        served.stop(signal.SIGTERM)

    stdout, stderr = process.communicate(TIMEOUT)
    assert (3, "") == (process.returncode, stdout)
    assert ["lost", "gap"] == [line.partition(":")[0] for line in stderr.splitlines()[:2]]


def test_a_link_is_used_again_after_a_restart_unless_that_ends_it(extcli, listening, tmp_path):
    """Each connection stores a new refresh token for the next. Once a link is stored, it listens as its game."""
    data = ("--data", f"sqlite:///{tmp_path}/data.db")
    with server_process(*data) as served:
        process = listening("-o", "plain", EXTCLI_URL=served.url)
        extcli("pin", "login", "--url", served.url, input=request_pin(served))
        extcli("socket", "close", "--all", "--code", "1012", "--reason", "new version", "--url", served.url)
        assert "close code 1012: new version" in read_until(process, "lost: ")
        assert "broadcaster of channel 777" in read_until(process, "now ")
        served.stop(signal.SIGTERM)
    with restarted(served.url, *data) as again:
        assert GAP.fullmatch(read_until(process, "gap"))
        extcli("broadcast", "send", "round", "1", "--channel", "777", "--url", served.url)
        assert "round\t1" == next_event(process)
        again.stop(signal.SIGTERM)
    with restarted(served.url):
        assert 4 == process.wait(TIMEOUT)
