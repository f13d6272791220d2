"""`extcli socket repl`: an interactive session, piped in or typed."""

from __future__ import annotations

import json
import signal

import pytest

from support.socket_client import request_pin
from support.terminal import CTRL_D, Terminal

CHANNEL_STATE = '{"state_id": "channel"}'


@pytest.fixture
def repl(extcli):
    return lambda *lines, **settings: extcli("socket", "repl", input="".join(f"{line}\n" for line in lines), **settings)


def test_a_script_of_requests_is_answered_in_order(extcli, repl):
    result = repl(
        'subscribe state {"topic_id": "channel"}',
        'set state {"state_id": "channel", "state": {"round": 2}}',
        "",
        '  get   state   {"state_id":   "channel"}  ',
        '{"action": "get", "params": {"request_id": 77, "target": "config"}, "data": {"config_id": "channel"}}',
        exits=0,
    )

    messages = result.jsonl
    assert ["subscribe", "set", "get", "get"] == [
        each["meta"]["action"] for each in messages if each["meta"]["request_id"] != 65535
    ]
    assert ["update"] == [each["meta"]["action"] for each in messages if each["meta"]["request_id"] == 65535]
    assert 77 == messages[-1]["meta"]["request_id"]
    assert {"round": 2} == next(each for each in messages if each["meta"]["action"] == "get")["data"]["state"]


def test_a_script_with_refusals_exits_4_at_its_end(repl):
    result = repl("get nonsense", "{", f"get state {CHANNEL_STATE}", exits=4)

    assert ["errors", "errors", "data"] == [next(name for name in each if name != "meta") for each in result.jsonl]
    assert "extcli: 2 of 3 requests were refused" in result.stderr


def test_an_invalid_line_ends_a_script_and_is_named(repl):
    result = repl(f"get state {CHANNEL_STATE}", "get state {bad", "get state {}")

    assert (2, 1) == (result.exit_code, len(result.stdout.splitlines()))
    assert "extcli: line 2: the data is not JSON" in result.stderr


def test_lines_after_exit_are_not_sent(repl):
    assert (0, "") == (repl("exit", "get nonsense").exit_code, repl("quit", "get nonsense").stdout)


def test_help_goes_to_standard_error(repl):
    result = repl("help")

    assert (0, "") == (result.exit_code, result.stdout)
    assert "ACTION [TARGET] [JSON]" in result.stderr


def test_empty_input_exits_0(extcli):
    assert (0, "") == (extcli("socket", "repl").exit_code, extcli("socket", "repl", input="\n\n").stdout)


def test_the_last_line_needs_no_newline(extcli):
    assert 1 == len(extcli("socket", "repl", input=f"get state {CHANNEL_STATE}").jsonl)


def test_a_long_script_is_answered_completely(repl):
    result = repl(*[f"get state {CHANNEL_STATE}"] * 3000)

    assert (0, 3000) == (result.exit_code, len(result.stdout.splitlines()))


def test_a_script_can_authenticate_itself(extcli, live):
    data = json.dumps({"client_id": "my-extension", "pin": request_pin(live)})

    result = extcli("socket", "repl", "--no-auth", input=f"authenticate {data}\nget state {CHANNEL_STATE}\n")

    assert (0, 2, "") == (result.exit_code, len(result.jsonl), result.stderr)


def test_a_closed_pipe_exits_0(shell):
    process = shell("socket", "repl")
    process.stdin.write(f"get state {CHANNEL_STATE}\n".encode() * 500)
    process.stdin.flush()
    assert process.stdout.readline()
    process.stdout.close()
    process.stdin.close()

    assert 0 == process.wait(timeout=20)


def test_a_terminal_shows_replies_and_updates_when_they_arrive(extcli):
    with Terminal("socket", "repl") as terminal:
        terminal.read_until("> ")
        terminal.type('subscribe state {"topic_id": "channel"}\n')
        terminal.read_until('"data":{"ok":true}}')
        terminal.read_until("> ")
        extcli("state", "set", "channel", "round=4")
        terminal.read_until('"state":{"round":4}')
        terminal.read_until("> ")
        terminal.type(CTRL_D)
        assert 0 == terminal.wait()


def test_a_mistake_on_a_terminal_does_not_end_the_session(environment):
    with Terminal("socket", "repl") as terminal:
        for typed, shown in (("get state {bad\n", "the data is not JSON"), ("get nonsense\n", '"status":404')):
            terminal.read_until("> ")
            terminal.type(typed)
            terminal.read_until(shown)
        terminal.read_until("> ")
        terminal.type("exit\n")
        assert 0 == terminal.wait()


def test_an_interrupt_exits_130_without_a_traceback(environment):
    with Terminal("socket", "repl") as terminal:
        terminal.read_until("> ")
        terminal.process.send_signal(signal.SIGINT)
        assert 130 == terminal.wait()
    assert "Traceback" not in terminal.screen


def test_verbose_masks_secrets_in_typed_lines(extcli, live):
    pin = request_pin(live)
    lines = [
        json.dumps({"action": "authenticate", "data": {"client_id": "my-extension", "pin": pin}}),
        f'{{"action": "authenticate", "pin": "{pin}"',
        '{"action": "get", "data": {"text": "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.x"}}',
        '{"action": "set", "data": {"state": ' + "[" * 2000 + "]" * 2000 + "}}",
    ]

    result = extcli("socket", "repl", "-v", input="\n".join(lines))

    assert 4 == len(result.stdout.splitlines())
    assert '> {"action":"authenticate","data":{"client_id":"my-extension","pin":"***"}}' in result.stderr.splitlines()
    assert pin not in result.stderr
    assert "eyJ" not in result.stderr
