"""Commands that delete, replace or reset data ask for confirmation in production: by a profile, or by the service."""

from __future__ import annotations

import json
import re
import signal

import pytest

from extcli.config.flags import Flags
from extcli.session import Session
from support.profile_files import write_profiles
from support.program import SECRET_BASE64, http_response
from support.service import CHANNEL, CLIENT_ID, LiveServer
from support.terminal import CTRL_D, Terminal

DESTRUCTIVE = {
    "vote rm": ("vote", "rm", "lunch"),
    "rank rm": ("rank", "rm", "colour"),
    "state set": ("state", "set", "channel", "{}"),
    "store-config set": ("store-config", "set", "channel", "{}"),
    "json-store set": ("json-store", "set", "score", "best=1"),
    "trivia rm": ("trivia", "rm", "q1"),
    "trivia rm-option": ("trivia", "rm-option", "q2", "red"),
    "ns rm": ("ns", "rm", "blue"),
    "codes rm": ("codes", "rm"),
    "pin revoke": ("pin", "revoke"),
    "pin expire": ("pin", "expire"),
    "clock advance": ("clock", "advance", "1s"),
    "clock set": ("clock", "set", "2026-12-24T18:00:00Z"),
    "clock freeze": ("clock", "freeze"),
    "clock freeze --off": ("clock", "freeze", "--off"),
    "reset": ("reset",),
    "api DELETE": ("api", "delete", "vote?id=lunch"),
    "api PUT": ("api", "PUT", "codes", "--as", "backend", "-f", "codes=[]"),
    "api POST of a store": ("api", "POST", "/v1/e/channel_state?a=1", "-f", "round=1"),
    "api POST of a JSON store": ("api", "POST", "json_store?id=score", "-f", "best=1"),
    "api POST of a definition": ("api", "POST", "vote_config", "-f", "id=lunch", "-f", 'config={"prompt": "New"}'),
    "api POST of a control of a namespace": ("api", "POST", "/_ns/blue/_emulator/reset", "--no-auth"),
    "api POST of a control": ("api", "POST", "/_emulator/reset", "--no-auth"),
    "socket set": ("socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {}}'),
    "vote define": ("vote", "define", "lunch", "--prompt", "Which?"),
    "link end": ("link", "end"),
}
every_destructive_command = pytest.mark.parametrize("command", DESTRUCTIVE.values(), ids=DESTRUCTIVE)


@pytest.fixture(autouse=True)
def secret(environment, monkeypatch):
    """Set the secret, because production issues no tokens."""
    monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)


@pytest.fixture
def content(extcli, live, backend):
    """Create data that each command destroys."""
    extcli("vote", "cast", "lunch", "--value", "3")
    extcli("vote", "define", "lunch", "--prompt", "Old")
    for question in ("q1", "q2"):
        extcli("trivia", "define", question)
        extcli("trivia", "define-option", question, "red")
    extcli("pin", "login", input=extcli("pin", "request", "-o", "plain").stdout)
    backend.put("codes", json={"codes": [["O1"]], "names": ["Old"]}).raise_for_status()


@pytest.mark.usefixtures("content")
@every_destructive_command
def test_without_a_terminal_nothing_is_destroyed_in_production(extcli, live, command):
    write_profiles(live={"url": live.url, "production": True})

    result = extcli(*command, "-p", "live", "-v", fails=2)

    address = f"{live.url.replace('http', 'ws')}/ws" if command[0] == "socket" else live.url
    assert f"profile live is production: {address}; " in result.stderr
    assert "pass --yes to confirm" in result.stderr
    assert not re.search("^> (?!GET)[A-Z]+ ", result.stderr, re.MULTILINE)
    assert "1" == extcli("vote", "get", "lunch").rows[0][1]


@pytest.mark.parametrize(
    ("command", "loss"),
    [
        (("clock", "freeze"), "the clock leaves real time"),
        (("clock", "freeze", "--off"), "the clock runs again, and data may expire"),
        (("reset",), "all data is deleted"),
        (("reset", "--keep", "1m"), "all data is deleted"),
        (("reset", "--undo"), "all data is replaced, and the clock may move"),
    ],
)
def test_the_question_says_what_the_option_changes(extcli, live, command, loss):
    write_profiles(live={"url": live.url, "production": True})

    result = extcli(*command, "-p", "live", fails=2)

    assert f"profile live is production: {live.url}; {loss}\n" in result.stderr


@pytest.mark.usefixtures("content")
@every_destructive_command
def test_yes_skips_the_confirmation(extcli, live, command):
    write_profiles(live={"url": live.url, "production": True})
    if command[:2] == ("api", "PUT"):
        command = (*command[:-1], 'codes=[["N1"]]', "-f", 'names=["New"]')

    assert 0 == extcli(*command, "-p", "live", "--yes").exit_code


@pytest.mark.usefixtures("content")
@every_destructive_command
def test_in_a_sandbox_no_command_asks(extcli, live, command):
    write_profiles(dev={"url": live.url})

    result = extcli(*command, "-p", "dev", "-v")

    assert "confirmation needed" not in result.stderr
    assert "production" not in result.stderr


def test_a_profile_can_say_that_it_is_not_production(extcli, live):
    write_profiles(dev={"url": live.url, "production": False})

    assert 0 == extcli("vote", "rm", "-p", "dev").exit_code


@pytest.mark.parametrize(
    "command",
    [
        ("vote", "cast", "--value", "3"),
        ("vote", "define", "new", "--prompt", "Which?"),
        ("vote", "define", "new", "--show"),
        ("state", "patch", "channel", "round=1"),
        ("store-config", "patch", "channel", "round=1"),
        ("accumulate", "add", "1"),
        ("api", "GET", "vote"),
        ("api", "POST", "vote", "-f", "value=1"),
        ("api", "PATCH", "channel_state", "-f", "round=1"),
        ("socket", "send", "get", "state", "--data", '{"state_id": "channel"}'),
        ("broadcast", "send", "hint", "1"),
        ("clock", "now"),
        ("codes", "rm"),
        ("token", "mint"),
    ],
)
def test_commands_that_destroy_nothing_do_not_ask(extcli, live, command):
    write_profiles(live={"url": live.url, "production": True})

    assert "confirmation needed" not in extcli(*command, "-p", "live").stderr


def test_the_question_names_the_service_and_what_is_lost(extcli, live):
    extcli("vote", "cast", "lunch", "--value", "3")
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("vote", "rm", "lunch", "-p", "live") as terminal:
        terminal.read_until(f"profile live is production: {live.url}")
        terminal.read_until("poll lunch is deleted, with its votes, log and definition")
        terminal.read_until("Continue? [y/N] ")
        terminal.type("y\n")

        assert 0 == terminal.wait()
    assert [] == extcli("vote", "get", "lunch").rows


@pytest.mark.parametrize(
    ("typed", "code"),
    [("y\n", 0), ("YES\n", 0), ("n\n", 2), ("\n", 2), ("yellow\n", 2), ("", 2)],
    ids=["y", "YES", "n", "empty", "other", "end"],
)
def test_only_y_and_yes_confirm(extcli, live, typed, code):
    extcli("vote", "cast", "lunch", "--value", "3")
    write_profiles(live={"url": live.url, "production": True})

    result = extcli("vote", "rm", "lunch", "-p", "live", input=typed, tty=True)

    assert (code, code != 0) == (result.exit_code, "nothing was changed" in result.stderr)
    assert (code != 0) == bool(extcli("vote", "get", "lunch").rows)


def test_ctrl_d_declines_and_ends_the_line(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("reset", "-p", "live") as terminal:
        terminal.read_until("Continue? [y/N] ")
        terminal.type(CTRL_D)

        assert 2 == terminal.wait()
    assert "Continue? [y/N] \r\nextcli: nothing was changed" in terminal.screen


def test_an_interrupted_question_exits_130(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("reset", "-p", "live") as terminal:
        terminal.read_until("Continue? [y/N] ")
        terminal.process.send_signal(signal.SIGINT)

        assert 130 == terminal.wait()


@pytest.mark.usefixtures("content")
def test_codes_rm_asks_once_in_production(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    result = extcli("codes", "rm", "-p", "live", input="y\n", tty=True, exits=0)

    assert [f"profile live is production: {live.url}", "set 0, 'Old', ends"] == result.stderr.splitlines()[:2]
    assert 1 == result.stderr.count("[y/N]")
    assert "End all sets? [y/N] " in result.stderr


def test_an_address_of_production_counts_from_any_source(extcli, live):
    """The default, a variable or an option."""
    write_profiles(live={"url": live.url, "production": True}, dev={"url": "http://127.0.0.1:1"})

    for args, variables in ((), {}), (("--url", f"{live.url}/"), {}), ((), {"EXTCLI_PROFILE": "dev"}):
        assert "profile live is production" in extcli("vote", "rm", *args, env=variables).stderr


def test_a_selected_production_profile_counts_with_any_url(extcli, live):
    write_profiles(live={"url": "https://ext.example", "production": True})

    result = extcli("vote", "rm", "-p", "live", "--url", live.url, exits=2)

    elsewhere = f"the address {live.url} (--url) differs from the address of profile live, https://ext.example; "
    assert f"{elsewhere}profile live is production, and this may be another name for it" in result.stderr
    assert f"is production: {live.url}" not in result.stderr
    assert 0 == extcli("vote", "rm", "--url", live.url).exit_code


def test_a_question_about_the_socket_names_its_address(extcli, live):
    write_profiles(live={"url": live.url, "production": True})
    command, chosen = ("socket", "send", "set", "state", "--data", "{}"), {"EXTCLI_PROFILE": "live"}

    assert f"profile live is production: {live.url.replace('http', 'ws')}/ws" in extcli(*command, env=chosen).stderr
    elsewhere = extcli(*command, env={"EXTCLI_WS_URL": "ws://other.example", **chosen})
    assert "the address ws://other.example (EXTCLI_WS_URL) differs from the address of profile live" in elsewhere.stderr


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("http://127.0.0.1:28111", "http://localhost:28111"),
        ("http://127.0.0.1:28111", "http://127.1:28111"),
        ("http://127.0.0.1:28111", "http://0.0.0.0:28111"),
        ("http://127.0.0.1:28111", "http://[::1]:28111"),
        ("http://localhost:28111", "http://[::ffff:127.0.0.1]:28111/"),
        ("https://ext.example", "http://ext.example"),
        ("https://ext.example/live", "https://EXT.example:443//live"),
    ],
)
def test_another_name_for_the_production_address_counts(extcli, url, other):
    write_profiles(live={"url": url, "production": True})

    result = extcli("vote", "rm", "--url", other, exits=2)

    assert f"the address {other.rstrip('/')} (--url)" in result.stderr


@pytest.mark.parametrize("other", ["http://127.0.0.1:28112", "http://127.0.0.1:28111/_ns/dev", "http://10.1:28111"])
def test_another_port_path_or_host_is_another_service(extcli, other):
    write_profiles(live={"url": "http://127.0.0.1:28111", "production": True})

    assert "false\n" == extcli("config", "get", "production", "--url", other).stdout


def test_a_default_production_profile_does_not_guard_other_urls(extcli, live):
    write_profiles('profile = "live"', live={"url": "https://ext.example", "production": True})

    assert 0 == extcli("reset", env={"EXTCLI_URL": live.url}).exit_code


def test_with_json_output_a_missing_confirmation_is_json(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    assert 2 == json.loads(extcli("reset", "-p", "live", "-o", "json").stderr)["error"]["exit_code"]


def test_a_definition_that_cannot_be_read_is_not_replaced(extcli, answering):
    url = answering(http_response("500 Internal Server Error", '{"reason":"Broken"}'))
    write_profiles(live={"url": url, "production": True})

    extcli("vote", "define", "lunch", "-p", "live", env={"EXTCLI_URL": "", "EXTCLI_TOKEN": "a.b.c"}, exits=5)


def test_an_interactive_repl_warns_once_and_does_not_ask(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("socket", "repl", "-p", "live", "--no-auth") as terminal:
        terminal.read_until("this is production; requests are sent without confirmation")
        terminal.read_until("> ")
        terminal.type(CTRL_D)

        assert 0 == terminal.wait()


def test_a_piped_repl_requires_yes(extcli, live):
    write_profiles(live={"url": live.url, "production": True})
    typed = 'set state {"state_id": "channel", "state": {"round": 1}}\n'

    result = extcli("socket", "repl", "-p", "live", "--no-auth", "-v", input=typed, fails=2)

    assert "piped requests may replace or delete data" in result.stderr
    assert "CONNECT" not in result.stderr
    assert 4 == extcli("socket", "repl", "-p", "live", "--no-auth", "--yes", input=typed).exit_code
    assert "production" not in extcli("socket", "repl", "--url", f"{live.url}/_ns/dev", input="").stderr


# Without a profile that says production


SIGNED = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_CHANNEL": CHANNEL, "EXTCLI_CLIENT_ID": CLIENT_ID}
ON_REST = ("vote rm", "rank rm", "state set", "json-store set", "trivia rm", "pin revoke", "api DELETE", "vote define")


@pytest.mark.parametrize("command", [DESTRUCTIVE[name] for name in ON_REST], ids=ON_REST)
def test_a_service_that_says_production_is_asked_about(extcli, production: LiveServer, command):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--replace", "--yes", "--url", production.url, env=SIGNED)

    result = extcli(*command, "--url", production.url, "-v", env=SIGNED, exits=2)

    assert f"{production.url} is production; " in result.stderr
    assert "pass --yes to confirm" in result.stderr
    assert not re.search("^> (?!GET)[A-Z]+ ", result.stderr, re.MULTILINE)


def test_a_crowd_asks_a_service_that_says_production(extcli, production: LiveServer):
    crowd = ("simulate", "crowd", "--viewers", "5", "--poll", "crowd", "--mix", "0:1,1:1", "--url", production.url)

    refused, agreed = extcli(*crowd, env=SIGNED), extcli(*crowd, "--yes", "-o", "json", env=SIGNED)

    assert (2, 0) == (refused.exit_code, agreed.exit_code), agreed.stderr
    assert "poll crowd gets 5 votes of users who do not exist" in refused.stderr


@pytest.mark.parametrize(
    ("url", "environment", "is_production"),
    [
        ("https://ebs.example", "", True),
        ("https://ebs.example", "production", True),
        ("https://ebs.example", "staging", True),
        ("https://ebs.example", "sandbox", False),
        ("http://127.0.0.1:9", "", False),
        ("http://localhost:9", "production", True),
    ],
)
def test_an_unknown_service_on_another_machine_counts_as_production(url, environment, is_production):
    session = Session(Flags(url=url))

    assert is_production == session.is_production(environment)


def test_a_single_vote_is_cast_without_a_further_request(extcli):
    assert "/_emulator/ready" not in extcli("vote", "cast", "lunch", "--value", "3", "-v").stderr


SET_STATE = ("socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {}}')


@pytest.mark.parametrize(
    "command", [SET_STATE, ("socket", "repl"), ("conform", "--writes", "--only", "W*")], ids=lambda each: each[1]
)
def test_a_write_over_a_socket_asks_the_service_of_the_socket(extcli, live, production: LiveServer, command):
    socket = production.url.replace("http", "ws") + "/ws"

    result = extcli(*command, "-v", env={"EXTCLI_URL": live.url, "EXTCLI_WS_URL": socket, **SIGNED}, exits=2)

    assert f"{socket} is production; " in result.stderr
    assert "CONNECT" not in result.stderr


def test_a_write_over_a_socket_needs_no_other_service(extcli, live):
    alone = {"EXTCLI_URL": "http://127.0.0.1:9", "EXTCLI_WS_URL": live.url.replace("http", "ws") + "/ws"}

    extcli(*SET_STATE, env=alone, exits=0)


def test_a_remote_socket_whose_service_does_not_respond_counts_as_production(extcli):
    socket = "ws://0.0.0.0:9/ws"  # no loopback address, and nothing listens there

    result = extcli(*SET_STATE, env={"EXTCLI_WS_URL": socket}, exits=2)

    assert f"{socket} does not say whether it is production, so it may be" in result.stderr


def test_an_interactive_repl_warns_of_a_service_that_says_production(production: LiveServer):
    with Terminal("socket", "repl", "--no-auth", "--url", production.url) as terminal:
        terminal.read_until("this is production; requests are sent without confirmation")
        terminal.type(CTRL_D)

        assert 0 == terminal.wait()
