"""`extcli listen`: its output, when it ends, and the identity it uses."""

from __future__ import annotations

import json
import re
import signal

import pytest

from emulator.config.environment import AnonymousLimits
from emulator.config.settings import Limits, Settings
from support.listen_process import CHANNEL, ROUND, TIMEOUT, next_event
from support.program import SECRET_BASE64
from support.service import live_server
from support.socket_client import SocketClient, linked_game, request_pin

# Output


def test_events_are_printed_when_they_arrive(extcli, listening):
    process = listening("-o", "jsonl")

    for number in (1, 2):
        extcli("broadcast", "send", "round", f'{{"number": {number}}}')
        event = json.loads(next_event(process))
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
def test_every_format_prints_an_event_on_one_safe_line(extcli, live, listening, form, line):
    """A deployment may send control characters that our service refuses."""
    process = listening("-o", form)
    update = {"event": "a\x1bb", "data": {"n": [1]}, "channel_id": CHANNEL, "scope": "channel"}
    live.run(live.service.publisher.publish(ROUND, "round", update))

    assert re.fullmatch(line, next_event(process))


def test_only_the_named_events_are_printed(extcli, listening):
    process = listening("round", "state", "round", "-o", "plain")

    for event in ("other", "round", "state"):
        extcli("broadcast", "send", event, '"x"')

    assert ['round\t"x"', 'state\t"x"'] == [next_event(process), next_event(process)]


def test_a_viewer_receives_whispers(extcli, listening):
    process, other = listening("-o", "plain", "--as", "viewer:U7"), listening("-o", "plain")

    extcli("broadcast", "send", "hint", "1", "--to", "U7")
    extcli("broadcast", "send", "news", "2", "--extension-wide")

    assert ["hint\t1", "news\t2"] == [next_event(process), next_event(process)]
    assert "news\t2" == next_event(other)


# The end


def test_count_ends_after_that_many_events(extcli, listening):
    process = listening("--count", "2", "-o", "plain")

    for number in range(3):
        extcli("broadcast", "send", "round", str(number))

    stdout, _ = process.communicate(timeout=TIMEOUT)
    assert (0, b"round\t0\nround\t1\n") == (process.returncode, stdout)


def test_too_few_events_before_the_timeout_exit_7(extcli):
    result = extcli("listen", "--count", "2", "--timeout", "200ms", fails=7)

    assert "extcli: received 0 of 2 events in time" == result.stderr.splitlines()[1]


def test_without_a_count_the_timeout_exits_0(extcli):
    result = extcli("listen", "round", "--timeout", "200ms")

    assert (0, "") == (result.exit_code, result.stdout)
    assert "ready: round, as viewer of channel 1001, with a sandbox token\n" == result.stderr


def test_the_timeout_variable_does_not_end_listening(listening, extcli):
    process = listening("--count", "1", "-o", "plain", EXTCLI_TIMEOUT="300ms")

    extcli("listen", "--timeout", "600ms")
    extcli("broadcast", "send", "round", "1")

    assert 0 == process.wait(timeout=TIMEOUT)


def test_quiet_hides_ready(extcli):
    assert "" == extcli("listen", "--timeout", "500ms", "-q").stderr


def test_an_interrupt_exits_130(listening):
    process = listening()

    process.send_signal(signal.SIGINT)

    _, stderr = process.communicate(timeout=TIMEOUT)
    assert (130, b"") == (process.returncode, stderr)


def test_a_closed_pipe_exits_0(extcli, listening):
    process = listening("-o", "plain")
    extcli("broadcast", "send", "round", "1")
    assert "round\t1" == next_event(process)

    process.stdout.close()
    extcli("broadcast", "send", "round", "2")

    assert 0 == process.wait(timeout=TIMEOUT)
    process.stdout = None


def test_an_unreachable_service_exits_3_at_once(extcli):
    result = extcli("listen", "--url", "http://127.0.0.1:1", fails=3)

    assert "cannot connect to" in result.stderr


def test_an_invalid_event_name_is_refused(extcli):
    result = extcli("listen", "x" * 257, fails=4)

    assert "1 to 256 printable characters" in result.stderr


def test_too_many_events_are_refused_with_advice(extcli):
    with live_server(Settings(limits=Limits(topics=1))) as live:
        result = extcli("listen", "round", "hint", "--url", live.url)

    assert 4 == result.exit_code
    assert (
        "  the connection would have 4 subscriptions; the limit is 1\n"
        "  correct the target, or subscribe to less over one connection\n"
    ) in result.stderr


def test_too_many_connections_are_refused_with_advice_when_it_authenticates(extcli):
    with live_server(Settings(limits=Limits(sockets=1))) as live, linked_game(live):
        result = extcli("listen", "--url", live.url)

    assert 4 == result.exit_code
    assert "429 Too Many Requests" in result.stderr
    assert "  retry later, or close other connections\n" in result.stderr


def test_too_many_connections_are_refused_with_advice_at_the_handshake(extcli):
    limits = Limits(anonymous=AnonymousLimits(address_sockets=1))
    with live_server(Settings(limits=limits)) as live, SocketClient(live):
        result = extcli("listen", "--url", live.url)

    assert 4 == result.exit_code
    assert "429 Too Many Requests" in result.stderr
    assert result.stderr.endswith("  retry later, or close other connections\n")


# Identity


def test_a_stored_link_is_the_default_identity(extcli, live):
    extcli("pin", "login", input=request_pin(live))

    result = extcli("listen", "--timeout", "500ms")

    assert "ready: all events, as broadcaster of channel 777, with the stored refresh token\n" == result.stderr
    assert (
        "as viewer of channel 777"
        in extcli("listen", "--timeout", "500ms", "--as", "viewer", "--channel", "777").stderr
    )


def test_a_secret_authenticates_in_production(extcli, production):
    result = extcli("listen", "--timeout", "500ms", "--url", production.url, env={"EXTCLI_SECRET": SECRET_BASE64})

    assert (0, "ready: all events, as viewer of channel 1001, with a self-signed token\n") == (
        result.exit_code,
        result.stderr,
    )
