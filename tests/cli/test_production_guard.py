"""Commands that delete, replace or reset data ask for confirmation in production: by a profile, or by the service."""

from __future__ import annotations

import re
import shlex

import pytest

from extcli.config.flags import Flags
from extcli.session import Session
from support.profile_files import write_profiles
from support.program import SECRET_BASE64, http_response
from support.service import CHANNEL, CLIENT_ID, LiveServer
from support.terminal import Terminal

DESTRUCTIVE = (
    *("vote rm lunch", "rank rm colour", "state set channel {}", "store-config set channel {}", "state rm channel"),
    *("json-store set score best=1", "json-store rm score", "trivia rm q1", "trivia rm-option q2 red", "ns rm blue"),
    *("codes rm", "pin expire", "clock advance 1s", "clock set 2026-12-24T18:00:00Z", "clock freeze"),
    *("clock freeze --off", "api delete vote?id=lunch", "api POST /v1/e/channel_state?a=1 -f round=1"),
    """api PUT codes --as backend -f codes='[["N1"]]' -f 'names=["New"]'""",
    """api POST vote_config -f id=lunch -f 'config={"prompt": "New"}'""",
    """socket send set state --data '{"state_id": "channel", "state": {}}'""",
    *("vote define lunch --prompt Which?", "link end", "api POST /_ns/blue/_emulator/reset --no-auth"),
    *("api POST /_emulator/reset --no-auth", "reset", "api POST json_store?id=score -f best=1"),
)


@pytest.fixture(autouse=True)
def secret(environment, monkeypatch):
    """Set the secret, because production issues no tokens."""
    monkeypatch.setenv("EXTCLI_SECRET", SECRET_BASE64)


def test_without_a_terminal_nothing_is_destroyed_in_production_without_yes(extcli, live, backend):
    for line in (
        *("vote cast lunch --value 3", "vote define lunch --prompt Old", "trivia define q1", "trivia define q2"),
        *("trivia define-option q1 red", "trivia define-option q2 red"),
    ):
        extcli(*line.split(), exits=0)
    extcli("pin", "login", input=extcli("pin", "request", "-o", "plain").stdout, exits=0)
    backend.put("codes", json={"codes": [["O1"]], "names": ["Old"]}).raise_for_status()
    write_profiles(live={"url": live.url, "production": True}, dev={"url": f"{live.url}/_ns/dev"})

    for line in DESTRUCTIVE:
        said = extcli(*shlex.split(line), "-p", "live", "-v", fails=2).stderr
        address = f"{live.url.replace('http', 'ws')}/ws" if "socket" in line else live.url
        assert f"profile live is production: {address}; " in said, line
        assert not re.search("^> (?!GET)[A-Z]+ ", said, re.MULTILINE), line
    assert "1" == extcli("vote", "get", "lunch").rows[0][1]
    for line in DESTRUCTIVE:
        extcli(*shlex.split(line), "-p", "live", "--yes", exits=0)
        assert "production" not in extcli(*shlex.split(line), "-p", "dev", "-v").stderr, line


def test_commands_that_destroy_nothing_do_not_ask(extcli, live):
    write_profiles(live={"url": live.url, "production": True})

    for line in (
        *("vote cast --value 3", "vote define new --prompt Which?", "vote config new", "state patch channel round=1"),
        *("store-config patch channel round=1", "accumulate add 1", "broadcast send hint 1", "clock now", "codes rm"),
        *("api GET vote", "api POST vote -f value=1", "api PATCH channel_state -f round=1", "token mint"),
        """socket send get state --data '{"state_id": "channel"}'""",
    ):
        assert "confirmation needed" not in extcli(*shlex.split(line), "-p", "live").stderr, line


@pytest.mark.usefixtures("production_profile")
def test_the_question_names_the_service_and_what_is_lost_and_an_interrupt_declines(extcli, live):
    extcli("vote", "cast", "lunch", "--value", "3")

    with Terminal("vote", "rm", "lunch", "-p", "live") as terminal:
        terminal.read_until(live.url)
        terminal.read_until("poll lunch")
        terminal.read_until("[y/N] ")
        terminal.interrupt()

        assert 130 == terminal.wait()
    assert [["3", "1"]] == extcli("vote", "get", "lunch").rows


@pytest.mark.parametrize(
    ("typed", "code"),
    [("y\n", 0), ("YES\n", 0), ("n\n", 2), ("\n", 2), ("yellow\n", 2), ("", 2)],
    ids=["y", "YES", "n", "empty", "other", "end"],
)
@pytest.mark.usefixtures("production_profile")
def test_only_y_and_yes_confirm(extcli, typed, code):
    extcli("vote", "cast", "lunch", "--value", "3")

    result = extcli("vote", "rm", "lunch", "-p", "live", input=typed, tty=True, exits=code)

    assert 1 == result.stderr.count("[y/N]")
    assert (code != 0) == bool(extcli("vote", "get", "lunch").rows)


def test_an_address_of_production_counts_from_any_source(extcli, live):
    """The default, a variable or an option."""
    write_profiles(live={"url": live.url, "production": True}, dev={"url": "http://127.0.0.1:1"})

    for args, variables in ((), {}), (("--url", f"{live.url}/"), {}), ((), {"EXTCLI_PROFILE": "dev"}):
        extcli("vote", "rm", *args, env=variables, exits=2)


def test_a_selected_production_profile_counts_with_any_url(extcli, live):
    write_profiles('profile = "other"', live={"url": "https://ext.example", "production": True}, other={})

    assert live.url in extcli("vote", "rm", "-p", "live", "--url", live.url, exits=2).stderr
    extcli("vote", "rm", "--url", live.url, exits=0)
    write_profiles('profile = "live"', live={"url": "https://ext.example", "production": True})
    extcli("reset", env={"EXTCLI_URL": live.url}, exits=0)


@pytest.mark.parametrize(
    ("url", "other", "is_production"),
    [
        ("http://127.0.0.1:28111", "http://localhost:28111", True),
        ("http://127.0.0.1:28111", "http://127.1:28111", True),
        ("http://127.0.0.1:28111", "http://0.0.0.0:28111", True),
        ("http://127.0.0.1:28111", "http://[::1]:28111", True),
        ("http://localhost:28111", "http://[::ffff:127.0.0.1]:28111/", True),
        ("https://ext.example", "http://ext.example", True),
        ("https://ext.example/live", "https://EXT.example:443//live", True),
        ("http://127.0.0.1:28111", "http://127.0.0.1:28112", False),
        ("http://127.0.0.1:28111", "http://127.0.0.1:28111/_ns/dev", False),
        ("http://127.0.0.1:28111", "http://10.1:28111", False),
    ],
)
def test_another_name_for_the_production_address_counts(extcli, url, other, is_production):
    write_profiles(live={"url": url, "production": True})

    assert str(is_production).lower() == extcli("config", "get", "production", "--url", other).stdout.strip()


def test_a_definition_that_cannot_be_read_is_not_replaced(extcli, answering):
    url = answering(http_response("500 Internal Server Error", '{"reason":"Broken"}'))
    write_profiles(live={"url": url, "production": True})

    extcli("vote", "define", "lunch", "-p", "live", env={"EXTCLI_URL": "", "EXTCLI_TOKEN": "a.b.c"}, exits=5)


@pytest.mark.parametrize("by", ["profile", "service"])
def test_an_interactive_repl_warns_once_and_does_not_ask(extcli, live, production: LiveServer, by):
    write_profiles(live={"url": live.url, "production": True})
    where = ("-p", "live") if by == "profile" else ("--url", production.url)

    said = extcli("socket", "repl", *where, "--no-auth", input="", tty=True, exits=0).stderr

    assert 1 == said.count("confirmation")


@pytest.mark.usefixtures("production_profile")
def test_a_piped_repl_requires_yes(extcli):
    typed = 'set state {"state_id": "channel", "state": {"round": 1}}\n'

    result = extcli("socket", "repl", "-p", "live", "--no-auth", "-v", input=typed, fails=2)

    assert "CONNECT" not in result.stderr
    extcli("socket", "repl", "-p", "live", "--no-auth", "--yes", input=typed, exits=4)


# Without a profile that says production


SIGNED = {"EXTCLI_SECRET": SECRET_BASE64, "EXTCLI_CHANNEL": CHANNEL, "EXTCLI_CLIENT_ID": CLIENT_ID}


def test_a_service_that_says_production_is_asked_about(extcli, production: LiveServer):
    where = ("--url", production.url, "-v")
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--replace", "--yes", *where, env=SIGNED, exits=0)

    for line in ("vote rm lunch", "state set channel {}", "api delete vote?id=lunch", "vote define lunch --prompt New"):
        said = extcli(*line.split(), *where, env=SIGNED, exits=2).stderr
        assert f"{production.url} is production; " in said, line
        assert "pass --yes to confirm" in said
        assert not re.search("^> (?!GET)[A-Z]+ ", said, re.MULTILINE)


def test_a_crowd_asks_a_service_that_says_production(extcli, production: LiveServer):
    crowd = ("simulate", "crowd", "--viewers", "5", "--poll", "crowd", "--mix", "0:1,1:1", "--url", production.url)

    refused, agreed = extcli(*crowd, env=SIGNED), extcli(*crowd, "--yes", "-o", "json", env=SIGNED)

    assert (2, 0) == (refused.exit_code, agreed.exit_code), agreed.stderr
    assert "poll crowd gets 5 votes from simulated users" in refused.stderr


@pytest.mark.parametrize(
    ("url", "environment", "is_production"),
    [
        ("https://ebs.example", "", True),
        ("https://ebs.example", "staging", True),
        ("https://ebs.example", "sandbox", False),
        ("http://127.0.0.1:9", "", False),
        ("http://localhost:9", "production", True),
    ],
)
def test_an_unknown_service_on_another_machine_counts_as_production(url, environment, is_production):
    assert is_production == bool(Session(Flags(url=url)).why_production(environment))


SET_STATE = ("socket", "send", "set", "state", "--data", '{"state_id": "channel", "state": {}}')


@pytest.mark.parametrize(
    "command", [SET_STATE, ("socket", "repl"), ("conform", "--writes", "--only", "W*")], ids=lambda each: each[1]
)
def test_a_write_over_a_socket_asks_the_service_of_the_socket(extcli, live, production: LiveServer, command):
    socket = production.url.replace("http", "ws") + "/ws"

    result = extcli(*command, "-v", env={"EXTCLI_URL": live.url, "EXTCLI_WS_URL": socket, **SIGNED}, exits=2)

    assert f"{socket} is production; " in result.stderr
    assert "CONNECT" not in result.stderr


def test_a_remote_socket_whose_service_does_not_respond_counts_as_production(extcli):
    socket = "ws://0.0.0.0:9/ws"  # no loopback address, and nothing listens there

    assert f"{socket} does not say" in extcli(*SET_STATE, env={"EXTCLI_WS_URL": socket}, exits=2).stderr


def test_a_write_over_a_socket_needs_no_other_service(extcli, live):
    alone = {"EXTCLI_URL": "http://127.0.0.1:9", "EXTCLI_WS_URL": live.url.replace("http", "ws") + "/ws"}

    extcli(*SET_STATE, env=alone, exits=0)
