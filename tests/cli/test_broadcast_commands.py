"""`extcli broadcast`: who receives a message, by which method, and how large it may be."""

from __future__ import annotations

import json
import random
import string

import pytest

from emulator.config.settings import Settings
from emulator.contract.limits import MAX_MESSAGE_BYTES
from extcli.commands.data.broadcast import size_of
from support.program import http_response
from support.service import CHANNEL, CLIENT_ID, live_server
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
    game.data("subscribe", "round")

    result = send("round", '{"number": 2}')

    assert (0, "", "") == (result.exit_code, result.stdout, result.stderr)
    assert {"event": "round", "data": {"number": 2}, "channel_id": CHANNEL, "scope": "channel"} == game.update()["data"]


def test_a_table_has_the_number_of_listeners(send, extcli, game):
    game.data("subscribe", "round")

    assert "sent to 1 listener in the channel\n" == send("round", "1", "-o", "table").stderr
    assert "sent to 1 listener in all channels\n" == (
        extcli("broadcast", "send", "round", "1", "--extension-wide", "-o", "table").stderr
    )


def test_a_broadcast_without_listeners_reports_that(send):
    unheard = "nothing in the channel listens to this event now; `extcli socket list` shows what listens\n"

    assert unheard == send("round", "1", "-o", "table").stderr
    assert unheard == send("round", "1", "--to", "U7", "-o", "table").stderr


def test_without_a_journal_a_table_names_the_listeners(extcli):
    with live_server(Settings(journal=0)) as live:
        sent = extcli("broadcast", "send", "round", "1", "-o", "table", "--url", live.url)
        whisper = extcli("broadcast", "send", "round", "1", "--to", "U7", "-o", "table", "--url", live.url)

    assert "sent to current listeners in the channel\n" == sent.stderr
    assert "sent to user U7 in the channel, if they are listening now\n" == whisper.stderr


@pytest.mark.parametrize("source", ["-", "@file"])
def test_data_can_come_from_standard_input_or_a_file(send, game, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text('["å"]')
    game.data("subscribe", "round")

    send("round", source, input='["å"]')

    assert ["å"] == game.update()["data"]["data"]


def test_a_whisper_reaches_one_user(send, listener):
    one, other = listener("viewer", "U7"), listener("viewer", "U8")

    send("hint", '"left"', "--to", "U7")

    received = one.update()["data"]
    assert ("left", "whisper") == (received["data"], received["scope"])
    assert other.no_update()


def test_an_extension_wide_message_reaches_all_channels(extcli, listener):
    listening = listener("viewer", "U7")

    extcli("broadcast", "send", "news", "1", "--extension-wide", env={"EXTCLI_CHANNEL": "5"}, exits=0)

    received = listening.update()["data"]
    assert ("", "extension") == (received["channel_id"], received["scope"])


def test_whisper_self_reaches_only_the_sender(extcli, listener):
    mine, other = listener("viewer", "U1"), listener("viewer", "U8")

    result = extcli("broadcast", "whisper-self", "draft", '{"text": "h"}', "--channel", CHANNEL)

    assert (0, "") == (result.exit_code, result.stdout)
    assert {"text": "h"} == mine.update()["data"]["data"]
    assert other.no_update()


# Which channel


def test_a_backend_must_name_the_channel(extcli, send, game):
    game.data("subscribe", "round")
    assert 0 == send("round", "1", "--as", "backend").exit_code
    assert CHANNEL == game.update()["data"]["channel_id"]

    result = extcli("broadcast", "send", "round", "1", "--as", "backend", "-v", fails=2)

    assert "--channel" in result.stderr
    assert "--extension-wide" in result.stderr
    assert "POST" not in result.stderr


def test_a_given_token_names_the_channel(extcli, game):
    token = extcli("token", "sandbox", "--role", "broadcaster", "--channel", CHANNEL).stdout.strip()
    game.data("subscribe", "round")

    extcli("broadcast", "send", "round", "1", env={"EXTCLI_TOKEN": token}, exits=0)

    assert CHANNEL == game.update()["data"]["channel_id"]


# Method


def test_the_method_is_get_unless_post_is_set(send, extcli, live):
    url = f"{live.url}/v1/e/broadcast"

    assert f"> GET {url}" in send("round", "1", "-v").stderr.splitlines()
    assert f"> POST {url}" in send("round", "1", "-v", "--post").stderr.splitlines()
    assert f"> POST {url}" in send("round", "1", "-v", env={"EXTCLI_BROADCAST_METHOD": "post"}).stderr.splitlines()
    for args in (("send", "a", "1", "--extension-wide"), ("whisper-self", "a", "1")):
        result = extcli("broadcast", *args, "--post", "-v")
        assert (0, 2) == (result.exit_code, result.stderr.count("> POST "))


def test_a_refused_get_suggests_post(send, answering):
    url = answering(http_response("405 Method Not Allowed"))

    result = send("round", "1", "--url", url, env={"EXTCLI_TOKEN": "t"}, exits=4)

    assert "use --post" in result.stderr


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


# Refusals


# Size


@pytest.mark.parametrize(
    ("text", "sent", "exit_code"),
    [
        ("x" * (MAX_MESSAGE_BYTES - 2), "plain", 0),
        ("x" * (MAX_MESSAGE_BYTES - 1), "compressed", 0),
        (noise(9_000), "refused", 7),
    ],
    ids=["plain", "compressed", "refused"],
)
def test_size_reports_how_a_message_would_be_sent_without_sending(extcli, text, sent, exit_code):
    result = extcli("broadcast", "size", "-", "-o", "json", "--url", "http://127.0.0.1:1", input=json.dumps(text))

    assert (exit_code, sent) == (result.exit_code, result.json["sent"])
    assert (len(text) + 2, MAX_MESSAGE_BYTES) == (result.json["bytes"], result.json["limit"])


def test_size_counts_compact_json_in_utf_8(extcli):
    rows = extcli("broadcast", "size", '{"a":  "å"}', "-o", "plain").rows

    assert ["bytes", str(len('{"a":"å"}'.encode()))] == rows[0]
    assert ["sent", "plain"] == rows[-1]


def test_size_and_the_service_agree_on_the_limit(send):
    text = noise(9_000)
    largest = max(size for size in range(3_000, 6_000) if size_of(text[:size])["sent"] != "refused")

    assert 0 == send("round", "-", input=json.dumps(text[:largest])).exit_code
    result = send("round", "-", input=json.dumps(text[: largest + 1]))
    assert (4, True) == (result.exit_code, "Message too large" in result.stderr)


def test_a_message_above_the_body_limit_is_reported(extcli, send, game):
    large, largest = "x" * 70_000, "x" * 600_000

    result = extcli("broadcast", "size", "-", "-o", "json", input=json.dumps(large))
    assert (0, "compressed", True) == (result.exit_code, result.json["sent"], "--max-body" in result.stderr)
    assert "413" in send("round", "-", input=json.dumps(large)).stderr
    assert 413 == game.error("broadcast", data={"topic": "round", "data": large})["status"]

    result = extcli("broadcast", "size", "-", "-o", "json", input=json.dumps(largest))
    assert (7, "refused") == (result.exit_code, result.json["sent"])
    assert "600,002 bytes; the limit before compression is 524,288" in result.stderr


def test_size_exits_7_and_says_what_to_do_if_too_large(extcli):
    result = extcli("broadcast", "size", "-", "-o", "plain", input=json.dumps(noise(9_000)))

    assert ["sent", "refused"] == result.rows[-1]
    assert "extcli: the message is too large" == result.stderr.splitlines()[0]
    assert "send less" in result.stderr


def test_a_message_of_a_page_reaches_games_under_its_own_name(extcli, game):
    game.data("subscribe", "round")

    assert 0 == extcli("broadcast", "as-page", "round", '{"number": 2}', "--channel", CHANNEL).exit_code

    assert ("round", {"number": 2}) == ((data := game.update()["data"])["event"], data["data"])


# `extcli datastream`


def test_games_of_the_channel_receive_the_event(extcli, live):
    with linked_game(live, "1001") as game:
        game.data("subscribe", "datastream", {})

        assert 0 == extcli("datastream", "send", '{"click": [10, 20]}').exit_code

        [entry] = game.update()["data"]["events"]
    assert {"click": [10, 20]} == entry["event"]


def test_an_event_can_come_from_standard_input(extcli, live):
    with linked_game(live, "1001") as game:
        game.data("subscribe", "datastream", {})
        extcli("datastream", "send", "-", input=json.dumps("hello"))

        assert "hello" == game.update()["data"]["events"][0]["event"]
