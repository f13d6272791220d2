"""`extcli broadcast`: its data, channel, method, trace and size. `features/test_broadcasts.py` has who receives it."""

from __future__ import annotations

import json
import random
import re
import string

import pytest

from emulator.contract.limits import MAX_MESSAGE_BYTES
from support.service import CHANNEL


@pytest.fixture
def send(extcli):
    """`extcli broadcast send` in the channel of the `game`."""
    return lambda *args, **settings: extcli("broadcast", "send", *args, "--channel", CHANNEL, **settings)


def noise(size: int) -> str:
    """Return text that hardly compresses."""
    return "".join(random.Random(7).choices(string.ascii_letters + string.digits + "+/", k=size))


@pytest.mark.parametrize("source", ["-", "@file"])
def test_data_can_come_from_standard_input_or_a_file(send, game, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text('["å"]')
    game.data("subscribe", "round")

    send("round", source, input='["å"]')

    assert ["å"] == game.update()["data"]["data"]


def test_a_backend_must_name_the_channel(extcli, send):
    send("round", "1", "--as", "backend", exits=0)
    assert "--channel" in extcli("broadcast", "send", "round", "1", "--as", "backend", "-v", fails=2).stderr
    token = extcli("token", "sandbox", "--role", "broadcaster", "--channel", CHANNEL).stdout.strip()
    extcli("broadcast", "send", "round", "1", env={"EXTCLI_TOKEN": token}, exits=0)


def test_the_method_is_get_unless_post_is_set(extcli):
    for command in ("send a 1", "send a 1 --extension-wide", "whisper-self a 1"):
        for method, options, variable in (("GET", (), ""), ("POST", ("--post",), ""), ("POST", (), "post")):
            env = {"EXTCLI_BROADCAST_METHOD": variable}
            shown = extcli("broadcast", *command.split(), *options, "-v", env=env, exits=0).stderr
            assert re.search(f"^> {method} .*(cast|whisper)", shown, re.MULTILINE), command


# What --verbose shows


def test_verbose_shows_requests_without_their_messages(extcli):
    document = json.dumps({"event": "code", "data": "SECRET"})
    for line in (
        *('broadcast send code "SECRET"', 'broadcast send code "SECRET" --extension-wide'),
        *('broadcast whisper-self code "SECRET" --post', "api POST broadcast_extension --input - --as backend"),
        "api POST broadcast/ --input - --as broadcaster",
        "api GET broadcast?event=code&data=%22SECRET%22 --as broadcaster",
        'socket send broadcast --data {"topic":"code","data":"SECRET"}',
    ):
        said = extcli(*line.split(), "-v", input=document, exits=0).stderr
        assert "broadcast" in said or "whisper_self" in said
        assert "SECRET" not in said, line


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
