"""`extcli pin`: both directions of linking, step by step (rulings T1, T2, T3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from websockets.sync.server import ServerConnection, serve

from extcli.api.tokens import sign
from support.service import SECRET

PIN = re.compile(r"[A-HJ-KMNP-Z2-46-9]{6}")


def request_pin(extcli, *args: str) -> str:
    return extcli("pin", "request", *args).stdout.strip()


# Requests


def test_a_requested_pin_is_for_the_broadcaster_s_channel(extcli, live):
    pin = request_pin(extcli, "--channel", "9")

    assert PIN.fullmatch(pin)
    assert ["channel_id", "9"] == extcli("pin", "login", "-", input=f"  {pin} \nmore\n", exits=0).rows[0]
    assert {"pin", "token"} == set(extcli("pin", "request", "-o", "json").json)
    assert PIN.search(extcli("pin", "request", "-o", "table").stdout)


# Expiry and revocation


@pytest.mark.parametrize("kind", ["--game", "--unbound"])
def test_a_pin_of_no_channel_needs_only_the_client_id_and_is_bound_by_its_validation(extcli, kind):
    result = extcli("pin", "request", kind, "-v", exits=0)
    pin, *token = result.rows[0]

    assert PIN.fullmatch(pin)
    assert ("> authorization: my-extension" in result.stderr.splitlines()) == (kind == "--unbound")
    assert "authtoken" not in result.stderr
    extcli("pin", "validate", "--channel", "9", input=pin, exits=0)
    if token:
        assert "9" == extcli("user", "info", "-o", "json", env={"EXTCLI_TOKEN": token[0]}).json["channel_id"]


def test_production_gives_a_game_a_pin_without_credentials(extcli, production):
    assert "auth" not in extcli("pin", "request", "--game", "-v", "--url", production.url, exits=0).stderr


def test_an_expired_pin_has_a_short_id(extcli):
    """The service's id of a PIN is a digest of 64 digits."""
    for command in ("clock advance 6m -o table", "clock advance 6m", "pin expire"):
        request_pin(extcli)
        assert re.search(r"\bpin\s+[0-9a-f]{12}…\s", extcli(*command.split(), exits=0).stdout), command


def test_expire_of_one_pin_leaves_the_clock_and_other_pins(extcli, live):
    pin, other, now = request_pin(extcli), request_pin(extcli), live.freeze()

    result = extcli("pin", "expire", "-", input=pin)

    assert (0, "") == (result.exit_code, result.stdout)
    assert now == live.now()
    assert [4, 0] == [extcli("pin", "login", input=each).exit_code for each in (pin, other)]


def test_expire_never_takes_a_pin_from_the_command_line(extcli):
    extcli("pin", "expire", request_pin(extcli).strip(), exits=2)
    extcli("pin", "expire", "-", "--digest", "00", exits=2)
    extcli("pin", "expire", "--digest", "00", exits=4)


# PINs come from a pipe or a prompt, never from the command line (rulings T1, T3)


def test_an_invalid_pin_is_neither_sent_nor_quoted(extcli):
    for text in ("", "A7K9Q", "A7K9QÄ", '{"pin":"A7K9QF"}', "A" * 1000):
        for verb in ("login", "validate"):
            said = extcli("pin", verb, "-v", input=text, fails=2).stderr
            assert ">" not in said
            assert not text or text not in said


# On a terminal


@pytest.mark.parametrize(("typed", "prompts", "code"), [(["ABC234"] * 5, 4, 4), ([], 1, 2), (["", "ABC", "PIN"], 3, 0)])
def test_a_pin_can_be_retyped_three_times(extcli, typed, prompts, code):
    ((pin, _),) = extcli("pin", "request", "--game").rows
    text = "".join(f"{each}\n" for each in typed).replace("PIN", pin)

    result = extcli("pin", "validate", input=text, tty=True, exits=code)

    assert prompts == result.stderr.count("shows: ")


# A reply with only the specified members


@contextmanager
def replying(data: dict[str, str]) -> Iterator[str]:
    """Run a socket that replies to each request with this data; yields its address."""

    def reply(connection: ServerConnection) -> None:
        for text in connection:
            number = json.loads(text)["params"]["request_id"]
            meta = {"request_id": number, "action": "authenticate", "target": "", "timestamp": 1}
            connection.send(json.dumps({"meta": meta, "data": data}))

    with serve(reply, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("more", "claims", "channel", "stored"),
    [
        ({}, {}, "7", "7"),
        ({}, {"channel_id": "8"}, "7", "8"),
        ({"twitch_id": "9"}, {"channel_id": "8"}, "", "9"),
        ({}, {}, "", None),
    ],
)
def test_login_takes_the_channel_of_the_reply_or_its_token_else_of_the_option(
    extcli, monkeypatch, more, claims, channel, stored
):
    with replying({"jwt": sign(claims, SECRET), "refresh": sign({}, SECRET), **more}) as url:
        monkeypatch.setenv("EXTCLI_WS_URL", url)
        options = ("--channel", channel) if channel else ()

        extcli("pin", "login", *options, input="ABC234\n", exits=0 if stored else 2)

    assert ([stored] if stored else []) == [row[2] for row in extcli("link", "list").rows]
