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
from support.terminal import CTRL_D, Terminal

PIN = re.compile(r"[A-HJ-KMNP-Z2-46-9]{6}")
MINUTES = 60_000


def request_pin(extcli, *args: str) -> str:
    return extcli("pin", "request", *args).stdout.strip()


# Requests


def test_a_requested_pin_is_for_the_broadcaster_s_channel(extcli, live):
    pin = request_pin(extcli, "--channel", "9")

    assert PIN.fullmatch(pin)
    assert ["channel_id", "9"] == extcli("pin", "login", "-", input=f"  {pin} \nmore\n", exits=0).rows[0]
    assert {"pin", "token"} == set(extcli("pin", "request", "-o", "json").json)
    assert PIN.search(extcli("pin", "request", "-o", "table").stdout)


def test_a_game_gets_a_pin_and_a_token_without_credentials(extcli, production):
    """Production needs no more than the client id, either."""
    result = extcli("pin", "request", "--game", "-v", "--url", production.url)

    ((pin, token),) = result.rows
    assert PIN.fullmatch(pin)
    assert 3 == len(token.split("."))
    assert "authorization" not in result.stderr
    assert "authtoken" not in result.stderr


def test_an_unbound_pin_needs_only_the_client_id_and_is_bound_by_its_validation(extcli):
    result = extcli("pin", "request", "--unbound", "-v")

    assert "> authorization: my-extension" in result.stderr.splitlines()
    assert "authtoken" not in result.stderr
    extcli("pin", "validate", "--channel", "9", input=result.stdout, exits=0)
    assert ["channel_id", "9"] == extcli("pin", "login", input=result.stdout).rows[0]


# Linking


def test_a_game_logs_in_with_the_pin_of_the_extension(extcli):
    assert "false\n" == extcli("pin", "status").stdout

    result = extcli("pin", "login", input=request_pin(extcli) + "\n")

    assert {"channel_id", "name", "access_until", "refresh_until"} == {name for name, _ in result.rows}
    assert "linked\n" == extcli("pin", "status", "-o", "table").stdout
    assert {"exists": True} == extcli("pin", "status", "-o", "json").json


def test_a_broadcaster_validates_the_pin_of_a_game(extcli):
    ((pin, token),) = extcli("pin", "request", "--game").rows
    extcli("user", "info", env={"EXTCLI_TOKEN": token}, exits=4)

    assert "" == extcli("pin", "validate", "--channel", "9", input=pin, exits=0).stdout

    info = extcli("user", "info", "-o", "json", env={"EXTCLI_TOKEN": token}).json
    assert ("broadcaster", "9") == (info["role"], info["channel_id"])
    assert "true\n" == extcli("pin", "status", "--channel", "9").stdout


def test_login_never_shows_the_pin_or_a_token(extcli):
    pin = request_pin(extcli)

    for form in ("table", "plain", "json"):
        result = extcli("pin", "login", "-v", "-o", form, input=pin, exits=0)
        assert "authenticate" in result.stderr
        for text in (result.stdout, result.stderr):
            assert pin not in text
            assert "eyJ" not in text


# Expiry and revocation


def test_expire_advances_the_clock_past_every_pin(extcli, live):
    pin, now = request_pin(extcli), live.freeze()

    assert ["pin"] == [row[0] for row in extcli("pin", "expire").rows]
    assert 5 * MINUTES == live.now() - now
    extcli("pin", "login", input=pin, exits=4)


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


def test_link_end_ends_pins_and_links_of_the_channel(extcli):
    pin = request_pin(extcli)
    extcli("pin", "login", input=pin)

    assert "" == extcli("link", "end", exits=0).stdout

    assert "false\n" == extcli("pin", "status").stdout
    extcli("pin", "login", input=pin, exits=4)
    extcli("link", "token", exits=2)


# PINs come from a pipe or a prompt, never from the command line (rulings T1, T3)


@pytest.mark.parametrize("text", ["", "\n", "A7K9Q", "A7K9QFF", "A7K-QF", "A7K9QÄ", '{"pin":"A7K9QF"}', "A" * 1000])
@pytest.mark.parametrize("verb", ["login", "validate"])
def test_an_invalid_pin_is_neither_sent_nor_quoted(extcli, verb, text):
    result = extcli("pin", verb, "-v", input=text, fails=2)

    assert ">" not in result.stderr
    assert not text.strip() or text.strip() not in result.stderr


# On a terminal


def test_a_mistyped_pin_can_be_retyped(extcli):
    ((pin, _),) = extcli("pin", "request", "--game").rows

    with Terminal("pin", "validate") as terminal:
        for typed in ("", "ABC", "ABC234", pin):
            terminal.read_until("shows: ")
            terminal.type(f"{typed}\n")
        assert 0 == terminal.wait()


@pytest.mark.parametrize(("typed", "prompts", "code"), [("ABC234\n", 4, 4), (CTRL_D, 1, 2)])
def test_a_pin_can_be_retyped_three_times(environment, typed, prompts, code):
    with Terminal("pin", "login") as terminal:
        for _ in range(prompts):
            terminal.read_until("shows: ")
            terminal.type(typed)
        assert code == terminal.wait()
    assert prompts == terminal.screen.count("shows: ")


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
