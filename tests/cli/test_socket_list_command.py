"""`extcli socket list`, `close` and `stall`."""

from __future__ import annotations

import json

import pytest

from support.pusher_client import pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID
from support.socket_client import request_pin
from support.terminal import CTRL_D, Terminal


@pytest.fixture
def number(extcli, game) -> str:
    """The number of a game that follows the state of its channel."""
    game.data("subscribe", "state", {"topic_id": "channel"})
    return str(extcli("socket", "list").rows[-1][0])


def test_the_list_has_one_row_per_socket(extcli, live, number):
    with subscribed_page(live):
        game, page = extcli("socket", "list").rows[-2:]

    assert [number, "game", CLIENT_ID, "broadcaster", CHANNEL] == game[:5]
    assert ["open", "state:channel", CHANNEL] == game[-3:]
    assert ["page", CLIENT_ID, "", CHANNEL] == page[1:5]
    assert [f"{pusher_channel()} {pusher_channel('all')}", ""] == page[-2:]
    for other in (("--client-id", "another"), ("--channel", "4")):
        assert [] == extcli("socket", "list", *other).rows


def test_watch_prints_the_list_again_only_when_it_changes(extcli, number):
    lines = extcli("socket", "list", "--watch", "--timeout", "600ms").jsonl

    assert [int(number)] == [each["sockets"][-1]["number"] for each in lines]


def test_close_ends_a_socket_with_its_code(extcli, game, number):
    assert "/_emulator/sockets/close" in extcli("socket", "close", number, "--dry-run").stdout
    assert game.no_update()

    assert f"{number}\n" == extcli("socket", "close", number, "--code", "4100", "--reason", "again").stdout

    assert (4100, "again") == (game.close_code(), game.socket.close_reason)
    extcli("socket", "close", "999999", exits=4)


# `extcli socket repl`: an interactive session, piped in or typed


UP = "\x1b[A"
CHANNEL_STATE = '{"state_id": "channel"}'


def test_a_script_of_requests_is_processed_in_order(extcli, repl):
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
    result = repl(f"get state {CHANNEL_STATE}", "get state {bad", "get state {}", exits=2)

    assert 1 == len(result.stdout.splitlines())
    assert "line 2: " in result.stderr


@pytest.mark.parametrize(
    ("script", "replies"),
    [
        ("", 0),
        ("\n\n", 0),
        ("help\n", 0),
        ("exit\nget nonsense\n", 0),
        ("quit\nget nonsense\n", 0),
        (f"get state {CHANNEL_STATE}", 1),
    ],
    ids=["empty", "empty lines", "help", "exit", "quit", "no newline at the end"],
)
def test_a_script_without_a_refusal_exits_0(extcli, script, replies):
    assert replies == len(extcli("socket", "repl", input=script, exits=0).stdout.splitlines())


def test_a_long_script_is_processed_completely(extcli, live):
    data = json.dumps({"client_id": "my-extension", "pin": request_pin(live)})
    lines = [f"authenticate {data}", *[f"get state {CHANNEL_STATE}"] * 3000]

    result = extcli("socket", "repl", "--no-auth", input="\n".join(lines), exits=0)

    assert (3001, "") == (len(result.stdout.splitlines()), result.stderr)


def test_a_terminal_shows_replies_and_updates_when_they_arrive(extcli):
    with Terminal("socket", "repl") as terminal:
        terminal.read_until("> ")
        terminal.type('subscribe state {"topic_id": "channel"}\n')
        terminal.read_until('"data":{"ok":true}}')
        terminal.read_until("> ")
        extcli("state", "set", "channel", "round=4")
        terminal.read_until('"state":{"round":4}')
        terminal.read_until("> ")
        terminal.type(f"{UP}\n")
        terminal.read_until('"data":{"ok":true}}')
        terminal.read_until("> ")
        terminal.type(CTRL_D)
        assert 0 == terminal.wait()


@pytest.mark.parametrize("end", ["exit", "interrupt"])
def test_a_mistake_on_a_terminal_does_not_end_the_session(environment, end):
    with Terminal("socket", "repl") as terminal:
        for typed, shown in (("get state {bad\n", "not JSON"), ("get nonsense\n", '"status":404')):
            terminal.read_until("> ")
            terminal.type(typed)
            terminal.read_until(shown)
        terminal.read_until("> ")
        if end == "exit":
            terminal.type("exit\n")
        else:
            terminal.interrupt()
        assert (0 if end == "exit" else 130) == terminal.wait()
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
