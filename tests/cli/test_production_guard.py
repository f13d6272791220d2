"""What deletes, replaces or resets asks first where a profile says production, and nowhere else."""

from __future__ import annotations

import json
import re
import signal

import pytest

from support.profile_files import write_profiles
from support.program import SECRET_BASE64, http_response
from support.terminal import CTRL_D, Terminal

DESTRUCTIVE = {
    "vote rm": ("vote", "rm", "lunch"),
    "rank rm": ("rank", "rm", "colour"),
    "state set": ("state", "set", "channel", "{}"),
    "store-config set": ("store-config", "set", "channel", "{}"),
    "codes rm": ("codes", "rm"),
    "pin revoke": ("pin", "revoke"),
    "pin expire": ("pin", "expire"),
    "clock advance": ("clock", "advance", "1s"),
    "clock set": ("clock", "set", "2026-12-24T18:00:00Z"),
    "clock freeze": ("clock", "freeze"),
    "reset": ("reset",),
    "api DELETE": ("api", "delete", "vote?id=lunch"),
    "api PUT": ("api", "PUT", "codes", "--as", "backend", "-f", "codes=[]"),
    "api POST of a store": ("api", "POST", "/v1/e/channel_state?a=1", "-f", "round=1"),
    "api POST of a control": ("api", "POST", "/_emulator/reset", "--no-auth"),
    "socket set": ("socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {}}'),
    "vote define": ("vote", "define", "lunch", "--prompt", "Which?"),
    "token revoke": ("token", "revoke"),
}
every_destructive_command = pytest.mark.parametrize("command", DESTRUCTIVE.values(), ids=DESTRUCTIVE)


@pytest.fixture(autouse=True)
def secret(environment, monkeypatch):
    """Production hands out no tokens: whoever can lose something there has its secret."""
    monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)


@pytest.fixture
def content(extcli, live, backend):
    """Something to lose."""
    extcli("vote", "cast", "lunch", "--value", "3")
    extcli("vote", "define", "lunch", "--prompt", "Old")
    extcli("pin", "login", input=extcli("pin", "request", "-o", "plain").stdout)
    backend.put("codes", json={"codes": [["O1"]], "names": ["Old"]}).raise_for_status()


@pytest.mark.usefixtures("content")
@every_destructive_command
def test_without_a_terminal_production_needs_a_yes_and_loses_nothing_without(extcli, live, command):
    write_profiles(live={"url": live.url, "production": True})

    result = extcli(*command, "-p", "live", "-v")

    assert (2, "") == (result.exit_code, result.stdout)
    address = f"{live.url.replace('http', 'ws')}/ws" if command[0] == "socket" else live.url
    assert f"profile live is production: {address}; " in result.stderr
    assert "pass --yes to confirm" in result.stderr
    assert not re.search("^> (?!GET)[A-Z]+ ", result.stderr, re.MULTILINE)
    assert "1" == extcli("vote", "get", "lunch").rows[0][1]


@pytest.mark.usefixtures("content")
@every_destructive_command
def test_with_yes_it_is_done(extcli, live, command):
    write_profiles(live={"url": live.url, "production": True})
    if command[:2] == ("api", "PUT"):
        command = (*command[:-1], 'codes=[["N1"]]', "-f", 'names=["New"]')

    assert 0 == extcli(*command, "-p", "live", "--yes").exit_code


@pytest.mark.usefixtures("content")
@every_destructive_command
@pytest.mark.parametrize("profile", [{}, {"production": False}], ids=["none said", "false"])
def test_elsewhere_nothing_asks_but_what_always_did(extcli, live, command, profile):
    write_profiles(dev={"url": live.url, **profile})

    result = extcli(*command, "-p", "dev", "-v")

    assert ("confirmation needed" in result.stderr) == (command == ("codes", "rm"))
    assert "production" not in result.stderr


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
def test_what_adds_reads_or_patches_or_has_nothing_to_lose_does_not_ask(extcli, live, command):
    write_profiles(live={"url": live.url, "production": True})

    assert "confirmation needed" not in extcli(*command, "-p", "live").stderr


@pytest.mark.parametrize(("typed", "code", "votes"), [("y\n", 0, []), ("n\n", 2, ["3"]), ("\n", 2, ["3"])])
def test_somebody_at_a_terminal_is_asked_and_told_what_and_where(extcli, live, typed, code, votes):
    extcli("vote", "cast", "lunch", "--value", "3")
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("vote", "rm", "lunch", "-p", "live") as terminal:
        terminal.read_until(f"profile live is production: {live.url}")
        terminal.read_until("poll lunch is deleted, with its votes, log and definition")
        terminal.read_until("Continue? [y/N] ")
        terminal.type(typed)

        assert code == terminal.wait()
    assert votes == [row[0] for row in extcli("vote", "get", "lunch").rows]
    assert ("nothing was changed" in terminal.screen) == (code != 0)


def test_a_question_that_is_ended_is_a_no_on_a_line_of_its_own(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("reset", "-p", "live") as terminal:
        terminal.read_until("Continue? [y/N] ")
        terminal.type(CTRL_D)

        assert 2 == terminal.wait()
    assert "Continue? [y/N] \r\nextcli: nothing was changed" in terminal.screen


def test_an_interrupted_question_is_130(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("reset", "-p", "live") as terminal:
        terminal.read_until("Continue? [y/N] ")
        terminal.process.send_signal(signal.SIGINT)

        assert 130 == terminal.wait()


@pytest.mark.usefixtures("content")
def test_sets_of_codes_are_asked_for_once(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("codes", "rm", "-p", "live") as terminal:
        terminal.read_until(f"profile live is production: {live.url}")
        terminal.read_until("set 0, 'Old', ends")
        terminal.read_until("End all sets? [y/N] ")
        terminal.type("y\n")

        assert 0 == terminal.wait()
    assert 1 == terminal.screen.count("[y/N]")


def test_the_address_counts_however_it_was_come_by(extcli, live):
    """Without a profile, by a variable or an option, it is production all the same."""
    write_profiles(live={"url": live.url, "production": True}, dev={"url": "http://127.0.0.1:1"})

    for args in ((), ("--url", f"{live.url}/"), ("-p", "dev")):
        assert "profile live is production" in extcli("vote", "rm", *args).stderr


def test_a_production_profile_that_was_asked_for_counts_wherever_a_url_leads_and_the_question_says_where(extcli, live):
    write_profiles(live={"url": "https://ext.example", "production": True})

    result = extcli("vote", "rm", "-p", "live", "--url", live.url)

    assert 2 == result.exit_code
    elsewhere = f"the address {live.url} (--url) is not that of profile live, https://ext.example; "
    assert f"{elsewhere}profile live is production, and this may be another name for it" in result.stderr
    assert f"is production: {live.url}" not in result.stderr
    assert 0 == extcli("vote", "rm", "--url", live.url).exit_code


def test_the_question_of_the_socket_says_where_the_socket_is(extcli, live):
    write_profiles(live={"url": live.url, "production": True})
    command = ("socket", "send", "set", "state", "--data", "{}", "-p", "live")

    assert f"profile live is production: {live.url.replace('http', 'ws')}/ws" in extcli(*command).stderr
    elsewhere = extcli(*command, env={"EXTCLI_WS_URL": "ws://other.example"})
    assert "the address ws://other.example (EXTCLI_WS_URL) is not that of profile live" in elsewhere.stderr


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
def test_another_name_of_the_same_address_counts(extcli, url, other):
    write_profiles(live={"url": url, "production": True})

    result = extcli("vote", "rm", "--url", other)

    assert 2 == result.exit_code
    assert f"the address {other.rstrip('/')} (--url)" in result.stderr


@pytest.mark.parametrize("other", ["http://127.0.0.1:28112", "http://127.0.0.1:28111/_ns/dev", "http://10.1:28111"])
def test_another_port_path_or_host_is_another_service(extcli, other):
    write_profiles(live={"url": "http://127.0.0.1:28111", "production": True})

    assert "false\n" == extcli("config", "get", "production", "--url", other).stdout


def test_a_production_profile_by_default_does_not_keep_a_url_elsewhere_from_working(extcli, live):
    write_profiles('profile = "live"', live={"url": "https://ext.example", "production": True})

    assert 0 == extcli("reset", env={"EXTCLI_URL": live.url}).exit_code


def test_as_json_the_refusal_is_json(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    assert 2 == json.loads(extcli("reset", "-p", "live", "-o", "json").stderr)["error"]["exit_code"]


def test_a_failing_look_at_a_definition_is_no_consent(extcli, answering):
    url = answering(http_response("500 Internal Server Error", '{"reason":"Broken"}'))
    write_profiles(live={"url": url, "production": True})

    result = extcli("vote", "define", "lunch", "-p", "live", env={"EXTCLI_URL": "", "EXTCLI_TOKEN": "a.b.c"})

    assert 5 == result.exit_code


def test_a_conversation_at_a_terminal_is_not_interrupted_by_questions_and_says_so(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    with Terminal("socket", "repl", "-p", "live", "--no-auth") as terminal:
        terminal.read_until("this is production; requests are sent without confirmation")
        terminal.read_until("> ")
        terminal.type(CTRL_D)

        assert 0 == terminal.wait()


def test_a_conversation_that_is_piped_in_needs_a_yes(extcli, live):
    write_profiles(live={"url": live.url, "production": True})
    typed = 'set state {"state_id": "channel", "state": {"round": 1}}\n'

    result = extcli("socket", "repl", "-p", "live", "--no-auth", "-v", input=typed)

    assert (2, "") == (result.exit_code, result.stdout)
    assert "piped requests may replace or delete data" in result.stderr
    assert "CONNECT" not in result.stderr
    assert 4 == extcli("socket", "repl", "-p", "live", "--no-auth", "--yes", input=typed).exit_code
    assert "production" not in extcli("socket", "repl", "--url", f"{live.url}/_ns/dev", input="").stderr
