"""`extcli broadcast`: who receives a message, by which method, and how large it may be."""

from __future__ import annotations

import json
import random
import re
import string

import pytest

from emulator.contract.limits import MAX_MESSAGE_BYTES
from support.service import CHANNEL, CLIENT_ID
from support.socket_client import SocketClient, linked_game


@pytest.fixture
def send(extcli):
    """`extcli broadcast send` in the channel of the `game`."""
    return lambda *args, **settings: extcli("broadcast", "send", *args, "--channel", CHANNEL, **settings)


@pytest.fixture
def listener(live, extcli):
    """`listener("viewer", "U7")` subscribes to all events of the channel as that user."""
    games: list[SocketClient] = []

    def follow(role: str, user: str) -> SocketClient:
        token = extcli("token", "sandbox", "--role", role, "--user", user, "--channel", CHANNEL).stdout.strip()
        games.append(SocketClient(live).__enter__())
        games[-1].data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
        games[-1].data("subscribe", "*")
        return games[-1]

    yield follow
    for game in games:
        game.__exit__(None, None, None)


def noise(size: int) -> str:
    """Return text that hardly compresses."""
    return "".join(random.Random(7).choices(string.ascii_letters + string.digits + "+/", k=size))


# Who receives it


def test_a_message_reaches_the_listeners_of_the_channel(send, game):
    assert "nothing in the channel listens" in send("round", "1", "-o", "table").stderr
    game.data("subscribe", "round")

    result = send("round", '{"number": 2}', exits=0)

    assert ("", "") == (result.stdout, result.stderr)
    assert {"event": "round", "data": {"number": 2}, "channel_id": CHANNEL, "scope": "channel"} == game.update()["data"]
    assert "1 listener" in send("round", "1", "-o", "table").stderr


@pytest.mark.parametrize("source", ["-", "@file"])
def test_data_can_come_from_standard_input_or_a_file(send, game, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text('["å"]')
    game.data("subscribe", "round")

    send("round", source, input='["å"]')

    assert ["å"] == game.update()["data"]["data"]


def test_a_whisper_reaches_one_user_and_an_extension_wide_message_all(extcli, listener):
    mine, other = listener("viewer", "U1"), listener("viewer", "U8")

    extcli("broadcast", "send", "hint", '"left"', "--to", "U1", "--channel", CHANNEL, exits=0)
    assert {"data": "left", "scope": "whisper"}.items() <= mine.update()["data"].items()
    extcli("broadcast", "whisper-self", "draft", '{"text": "h"}', "--channel", CHANNEL, exits=0)
    assert {"text": "h"} == mine.update()["data"]["data"]
    assert other.no_update()
    extcli("broadcast", "send", "news", "1", "--extension-wide", env={"EXTCLI_CHANNEL": "5"}, exits=0)
    for each in (mine, other):
        assert {"channel_id": "", "scope": "extension"}.items() <= each.update()["data"].items()


# Which channel


def test_a_backend_must_name_the_channel(extcli, send, game):
    game.data("subscribe", "round")
    send("round", "1", "--as", "backend", exits=0)
    assert CHANNEL == game.update()["data"]["channel_id"]

    result = extcli("broadcast", "send", "round", "1", "--as", "backend", "-v", fails=2)

    assert "--channel" in result.stderr
    assert "POST" not in result.stderr
    token = extcli("token", "sandbox", "--role", "broadcaster", "--channel", CHANNEL).stdout.strip()
    extcli("broadcast", "send", "round", "1", env={"EXTCLI_TOKEN": token}, exits=0)
    assert CHANNEL == game.update()["data"]["channel_id"]


# Method


@pytest.mark.parametrize("command", ["send a 1", "send a 1 --extension-wide", "whisper-self a 1"])
@pytest.mark.parametrize(
    ("method", "options", "variable"), [("GET", (), ""), ("POST", ("--post",), ""), ("POST", (), "post")]
)
def test_the_method_is_get_unless_post_is_set(extcli, live, command, method, options, variable):
    shown = extcli("broadcast", *command.split(), *options, "-v", env={"EXTCLI_BROADCAST_METHOD": variable}, exits=0)

    assert method in [
        line.split()[1] for line in shown.stderr.splitlines() if re.match("> [A-Z]+ .*(cast|whisper)", line)
    ]


# What --verbose shows


@pytest.mark.parametrize(
    ("args", "document"),
    [
        (("broadcast", "send", "code", '"SECRET"'), None),
        (("broadcast", "send", "code", '"SECRET"', "--extension-wide"), None),
        (("broadcast", "whisper-self", "code", '"SECRET"', "--post"), None),
        (
            ("api", "POST", "broadcast_extension", "--input", "-", "--as", "backend"),
            {"event": "code", "data": "SECRET"},
        ),
        (("api", "POST", "broadcast/", "--input", "-", "--as", "broadcaster"), {"event": "code", "data": "SECRET"}),
        (("api", "GET", "broadcast?event=code&data=%22SECRET%22", "--as", "broadcaster"), None),
        (("socket", "send", "broadcast", "--data", '{"topic": "code", "data": "SECRET"}'), None),
    ],
    ids=["send", "extension wide", "whisper", "alias", "slash", "query", "socket"],
)
def test_verbose_shows_requests_without_their_messages(extcli, args, document):
    result = extcli(*args, "-v", input=json.dumps(document), exits=0)

    assert "broadcast" in result.stderr or "whisper_self" in result.stderr
    assert "SECRET" not in result.stderr


# Size


@pytest.mark.parametrize(
    ("text", "sent", "exit_code"),
    [
        ("x" * (MAX_MESSAGE_BYTES - 2), "plain", 0),
        ("x" * (MAX_MESSAGE_BYTES - 1), "compressed", 0),
        ("x" * 70_000, "compressed", 0),
        (noise(9_000), "refused", 7),
        ("x" * 600_000, "refused", 7),
    ],
    ids=["plain", "compressed", "above the body limit", "refused", "above the limit before compression"],
)
def test_size_reports_how_a_message_would_be_sent_without_sending(extcli, text, sent, exit_code):
    given = json.dumps(text)
    result = extcli("broadcast", "size", "-", "-o", "json", "--url", "http://127.0.0.1:1", input=given, exits=exit_code)

    assert (sent, len(given), MAX_MESSAGE_BYTES) == tuple(result.json[name] for name in ("sent", "bytes", "limit"))
    is_too_large = len(given) > 65_536 or sent == "refused"
    extcli("broadcast", "send", "round", "-", input=given, exits=4 if is_too_large else 0)


# `extcli datastream`


@pytest.mark.parametrize(("given", "piped"), [('{"click": [10, 20]}', ""), ("-", '{"click": [10, 20]}')])
def test_games_of_the_channel_receive_the_event(extcli, live, given, piped):
    with linked_game(live, "1001") as game:
        game.data("subscribe", "datastream", {})

        extcli("datastream", "send", given, input=piped, exits=0)

        [entry] = game.update()["data"]["events"]
    assert {"click": [10, 20]} == entry["event"]
