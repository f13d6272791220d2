"""`extcli socket`: one request and its updates, how the connection is authenticated, lists and sessions."""

from __future__ import annotations

import json

import pytest

from support.program import SECRET_BASE64, http_response
from support.pusher_client import pusher_channel, subscribed_page
from support.service import CHANNEL, CLIENT_ID, live_server
from support.socket_client import request_pin
from support.terminal import Terminal

CHANNEL_STATE = '{"state_id": "channel"}'
GET = ("get", "state", "--data", CHANNEL_STATE)
SUBSCRIBE = ("subscribe", "state", "--data", '{"topic_id": "channel"}')


@pytest.fixture
def send(extcli):
    return lambda *args, **settings: extcli("socket", "send", *args, **settings)


# One request


def test_send_prints_the_data_of_the_reply(extcli, send):
    extcli("state", "set", "channel", "round=4")

    assert '{"state":{"round":4},"ok":true}\n' == send(*GET).stdout
    for form in ("table", "plain", "json", "jsonl"):
        assert {"state": {"round": 4}, "ok": True} == send(*GET, "-o", form).json


def test_a_refusal_is_explained_as_over_rest(send):
    result = send("get", "nonsense", "-q", "-o", "json", fails=4)

    error = json.loads(result.stderr)["error"]
    assert (4, 404) == (error["exit_code"], error["status"])
    assert [404] == [fault["status"] for fault in error["body"]["errors"]]


def test_no_auth_skips_authentication(send):
    send(*GET, "--no-auth", fails=4)
    assert {"ok": True} == send("subscribe", "authentication", "--no-auth").json


# Updates


def test_wait_prints_that_many_updates(extcli, shell):
    process = shell("socket", "send", *SUBSCRIBE, "--wait", "2")
    assert {"ok": True} == json.loads(process.stdout.readline())

    for number in (1, 2):
        extcli("state", "set", "channel", f"round={number}")
        update = json.loads(process.stdout.readline())
        assert ("update", {"round": number}) == (update["meta"]["action"], update["data"]["state"])

    assert 0 == process.wait(timeout=60)


def test_subscribe_exits_7_if_too_few_updates_arrive_in_time(send):
    assert {"ok": True} == send(*SUBSCRIBE, "--wait", "2", "--timeout", "200ms", exits=7).json


# Identity


def test_a_stored_link_is_used_and_its_new_token_stored_until_it_is_invalid(extcli, send, live, broadcaster, tmp_path):
    extcli("pin", "login", input=request_pin(live))
    before = (tmp_path / "state" / "links.json").read_text()
    live.advance(2000)

    result = send(*GET)

    assert "authenticated as broadcaster of channel 777, with the stored refresh token\n" == result.stderr
    assert before != (tmp_path / "state" / "links.json").read_text()
    broadcaster.delete("pin").raise_for_status()
    assert [4, 0] == [send(*GET).exit_code for _ in range(2)]


def test_an_identity_option_overrides_a_stored_link(extcli, send, live):
    for channel in ("777", "2"):
        extcli("pin", "login", input=request_pin(live, channel))

    for args, identity in (
        ("--as viewer:U5", "as viewer of channel 1001, with a sandbox token"),
        ("--channel 5", "as broadcaster of channel 5, with a sandbox token"),
        ("--channel 777", "as broadcaster of channel 777, with the stored refresh token"),
        ("--client-id other", "as broadcaster of channel 1001, with a sandbox token"),
    ):
        assert identity in send(*GET, *args.split(), exits=0).stderr
    send(*GET, exits=2)


def test_credentials_of_the_environment_authenticate(extcli, send, live):
    live.advance(86_400_000)
    extcli("pin", "login", input=request_pin(live))
    token = extcli("token", "sandbox", "--role", "admin").stdout.strip()

    for options, given in (((), {"EXTCLI_TOKEN": token}), (("--as", "admin"), {"EXTCLI_SECRET": SECRET_BASE64})):
        send("set", "state", "--data", '{"state_id": "extension", "state": {}}', *options, env=given, exits=0)


# Secrets


def test_verbose_masks_secrets_in_frames(extcli, send, live, tmp_path):
    extcli("pin", "login", input=request_pin(live))
    refresh = json.loads((tmp_path / "state" / "links.json").read_text())["links"][0]["refresh"]

    for args in ((), ("--as", "broadcaster")):
        stderr = send(*GET, "-v", *args).stderr
        assert "> CONNECT ws://" in stderr
        assert '> {"action":"get","params":{"request_id":2,"target":"state"},"data":{"state_id":"channel"}}' in stderr
        assert '"jwt":"***"' in stderr
        assert "eyJ" not in stderr
        assert refresh not in stderr


# The address of the WebSocket, and errors when it is missing, not one, or closed


def ws(url: str) -> dict[str, str]:
    return {"EXTCLI_WS_URL": url.replace("http", "ws", 1)}


# The address


def test_the_url_option_overrides_the_socket_of_the_environment(send, live):
    """A variable for another service must not lead this one's credentials there."""
    own, elsewhere = ws(f"{live.url}/0.2.0/my-extension"), {"EXTCLI_WS_URL": "ws://127.0.0.1:1/ws"}

    assert f"> CONNECT {own['EXTCLI_WS_URL']}\n" in send(*GET, "-v", env=own, exits=0).stderr
    given = send(*GET, "-v", "--url", live.url, env=elsewhere, exits=0).stderr
    assert f"> CONNECT {live.url.replace('http', 'ws', 1)}/ws\n" in given


def test_an_address_without_a_socket_is_an_error(send, live):
    for url, code in (
        ("ws://127.0.0.1:1/ws", 3),
        (f"{live.url.replace('http', 'ws', 1)}/v1/e/vote", 4),
        (f"{live.url.replace('http', 'wss', 1)}/ws", 3),
    ):
        send(*GET, "--no-auth", env={"EXTCLI_WS_URL": url}, fails=code)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([b"220 mail.example ESMTP\r\n"], 3),
        ([], 3),
        ([http_response("200 OK")], 4),
        ([http_response("502 Bad Gateway")], 5),
    ],
    ids=["no HTTP", "no answer", "200", "502"],
)
def test_a_server_without_websocket_gets_an_exit_code(send, answering, answers, code):
    send(*GET, "--no-auth", env=ws(answering(*answers)), fails=code)


def test_a_silent_server_gets_exit_code_3(send, answering):
    send(*GET, "--no-auth", "--timeout", "100ms", env=ws(answering(hold=True)), fails=3)


def test_credentials_do_not_follow_a_redirect_to_another_host(send, live, answering):
    there = f"{live.url.replace('http', 'ws', 1)}/ws"

    result = send(*GET, "-v", env=ws(answering(http_response("307 Temporary Redirect", location=there))), fails=4)

    assert "authenticate" not in result.stderr


# Ends of a connection


def test_a_stopping_service_is_reported(shell):
    with live_server() as live:
        process = shell("socket", "repl", EXTCLI_URL=live.url)
        process.stdin.write("get state {}\n")
        assert process.stdout.readline()

    assert 3 == process.wait(timeout=60)
    assert "close code 1001" in process.stderr.read()


# `extcli socket list`, `close` and `stall`


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


def test_a_script_without_a_refusal_exits_0(extcli):
    for script in ("", "\n\n", "help\n", "exit\nget nonsense\n", "quit\nget nonsense\n"):
        extcli("socket", "repl", input=script, fails=0)
    last = f"get state {CHANNEL_STATE}"  # without a newline at the end
    assert 1 == len(extcli("socket", "repl", input=last, exits=0).stdout.splitlines())


def test_a_long_script_is_processed_completely(extcli, live):
    data = json.dumps({"client_id": "my-extension", "pin": request_pin(live)})
    lines = [f"authenticate {data}", *[f"get state {CHANNEL_STATE}"] * 1000]

    result = extcli("socket", "repl", "--no-auth", input="\n".join(lines), exits=0)

    assert (1001, "") == (len(result.stdout.splitlines()), result.stderr)


def test_a_terminal_shows_replies_updates_and_mistakes_when_they_arrive(extcli):
    with Terminal("socket", "repl") as terminal:
        terminal.read_until("> ")
        terminal.type('subscribe state {"topic_id": "channel"}\n')
        terminal.read_until('"data":{"ok":true}}')
        terminal.read_until("> ")
        extcli("state", "set", "channel", "round=4")
        terminal.read_until('"state":{"round":4}')
        terminal.read_until("> ")
        for typed, shown in (
            (UP, '"data":{"ok":true}}'),
            ("get state {bad", "not JSON"),
            ("get nonsense", '"status":404'),
        ):
            terminal.type(f"{typed}\n")
            terminal.read_until(shown)
            terminal.read_until("> ")
        terminal.interrupt()
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
