"""`extcli pin`: both directions of linking, step by step (rulings T1, T2, T3)."""

from __future__ import annotations

import re

import pytest

from support.socket_client import SocketClient
from support.terminal import CTRL_D, Terminal

PIN = re.compile(r"[A-HJ-KMNP-Z2-46-9]{6}")
MINUTES = 60_000


def request_pin(extcli, *args: str) -> str:
    return extcli("pin", "request", *args).stdout.strip()


def refused(extcli, *args: str) -> bool:
    return 4 == extcli("user", "info", *args).exit_code


# Requests


def test_a_requested_pin_is_for_the_broadcaster_s_channel(extcli, live):
    pin = request_pin(extcli, "--channel", "9")

    assert PIN.fullmatch(pin)
    with SocketClient(live) as game:
        assert "9" == game.data("authenticate", data={"client_id": "my-extension", "pin": pin})["twitch_id"]


def test_a_table_shows_the_pin_in_a_frame_and_its_lifetime(extcli):
    stdout = extcli("pin", "request", "-o", "table").stdout

    assert re.search(rf"│ +{PIN.pattern} +│", stdout)
    assert "valid for 5m" in stdout


def test_json_output_is_the_response_of_the_service(extcli):
    document = extcli("pin", "request", "-o", "json").json

    assert document == {"pin": document["pin"], "token": document["pin"]}


def test_a_game_gets_a_pin_and_a_token_without_credentials(extcli, production):
    """Production needs no more than the client id, either."""
    result = extcli("pin", "request", "--game", "-v", "--url", production.url)

    ((pin, token),) = result.rows
    assert PIN.fullmatch(pin)
    assert 3 == len(token.split("."))
    assert "authorization" not in result.stderr
    assert "authtoken" not in result.stderr


def test_a_table_shows_the_game_s_token_on_one_line(extcli):
    result = extcli("pin", "request", "--game", "-o", "table")

    assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", result.stdout.splitlines()[-1])
    assert "valid from then on" in result.stderr


def test_an_unbound_pin_needs_only_the_client_id(extcli):
    result = extcli("pin", "request", "--unbound", "-v")

    assert PIN.fullmatch(result.stdout.strip())
    assert "> authorization: my-extension" in result.stderr.splitlines()
    assert "authtoken" not in result.stderr


def test_validation_binds_an_unbound_pin_to_a_channel(extcli):
    pin = request_pin(extcli, "--unbound")

    assert 0 == extcli("pin", "validate", "--channel", "9", input=pin).exit_code
    assert ["channel_id", "9"] == extcli("pin", "login", input=pin).rows[0]


def test_the_path_for_pins_is_configurable(extcli):
    result = extcli("pin", "request", "-v", env={"EXTCLI_PIN_PATH": "/gamelink/token"}, exits=0)

    assert "/v1/e/gamelink/token" in result.stderr


# Linking


def test_a_game_logs_in_with_the_pin_of_the_extension(extcli):
    assert "not linked\n" == extcli("pin", "status", "-o", "table").stdout

    result = extcli("pin", "login", input=request_pin(extcli) + "\n")

    assert {"channel_id", "name", "access_until", "refresh_until"} == {name for name, _ in result.rows}
    assert "linked\n" == extcli("pin", "status", "-o", "table").stdout
    assert "true\n" == extcli("pin", "status").stdout
    assert {"exists": True} == extcli("pin", "status", "-o", "json").json


def test_a_broadcaster_validates_the_pin_of_a_game(extcli, tmp_path):
    ((pin, token),) = extcli("pin", "request", "--game").rows
    (tmp_path / "token").write_text(token)
    assert refused(extcli, "--token-file", str(tmp_path / "token"))

    result = extcli("pin", "validate", "--channel", "9", "-o", "table", input=pin)

    assert (0, "", "the game is linked\n") == (result.exit_code, result.stdout, result.stderr)
    info = extcli("user", "info", "-o", "json", "--token-file", str(tmp_path / "token")).json
    assert ("broadcaster", "9") == (info["role"], info["channel_id"])


def test_login_shows_when_the_tokens_expire(extcli, live):
    now = live.freeze()
    login = extcli("pin", "login", "-o", "json", input=request_pin(extcli)).json
    assert (now // 1000 + 7 * 86_400) * 1000 == login["access_until"]
    assert (now // 1000 + 365 * 86_400) * 1000 == login["refresh_until"]

    table = extcli("pin", "login", "-o", "table", input=request_pin(extcli)).stdout
    assert re.search(r"^access until +20\d\d-", table, re.MULTILINE)
    assert re.search(r"^refresh until +20\d\d-", table, re.MULTILINE)


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

    result = extcli("pin", "expire")

    assert ["pin"] == [row[0] for row in result.rows]
    assert "advanced the clock by 5m; all earlier PINs have expired" in result.stderr
    assert 5 * MINUTES == live.now() - now
    assert 4 == extcli("pin", "login", input=pin).exit_code


def test_expire_of_one_pin_leaves_the_clock_and_other_pins(extcli, live):
    pin, other, now = request_pin(extcli), request_pin(extcli), live.freeze()

    result = extcli("pin", "expire", "-", input=pin)

    assert (0, "") == (result.exit_code, result.stdout)
    assert now == live.now()
    assert [4, 0] == [extcli("pin", "login", input=each).exit_code for each in (pin, other)]


def test_expire_never_takes_a_pin_from_the_command_line(extcli):
    assert 2 == extcli("pin", "expire", request_pin(extcli).strip()).exit_code
    assert 2 == extcli("pin", "expire", "-", "--digest", "00").exit_code


def test_expire_of_an_unknown_digest_exits_4(extcli):
    result = extcli("pin", "expire", "--digest", "00", exits=4)

    assert "no live PIN with this digest" in result.stderr


def test_expire_is_only_for_an_emulator(extcli, production):
    result = extcli("pin", "expire", "--url", production.url, fails=4)

    assert "only an emulator in sandbox has this path" in result.stderr


def test_revoke_ends_pins_and_links_of_the_channel(extcli):
    pin = request_pin(extcli)
    extcli("pin", "login", input=pin)

    result = extcli("pin", "revoke", "-o", "table")

    assert (0, "") == (result.exit_code, result.stdout)
    assert "the channel's PINs, PIN tokens and refresh tokens are revoked" in result.stderr
    assert "sockets that are open keep their rights; `extcli socket close --all` closes sockets of an emulator" in (
        result.stderr
    )
    assert "false\n" == extcli("pin", "status").stdout
    assert 4 == extcli("pin", "login", input=pin).exit_code
    assert "no link is stored" in extcli("link", "token").stderr


# PINs come from a pipe or a prompt, never from the command line (rulings T1, T3)


def test_a_dash_means_standard_input(extcli):
    assert 0 == extcli("pin", "login", "-", input=f"  {request_pin(extcli)} \nmore\n").exit_code


@pytest.mark.parametrize("text", ["", "\n", "A7K9Q", "A7K9QFF", "A7K-QF", "A7K9QÄ", '{"pin":"A7K9QF"}', "A" * 1000])
@pytest.mark.parametrize("verb", ["login", "validate"])
def test_an_invalid_pin_is_neither_sent_nor_quoted(extcli, verb, text):
    result = extcli("pin", verb, "-v", input=text, fails=2)

    assert ">" not in result.stderr
    assert not text.strip() or text.strip() not in result.stderr


@pytest.mark.parametrize(
    ("pin", "warning"),
    [
        ("ABO234", "is the third character the letter O, or a zero? most PINs have neither"),
        ("1BC234", "is the first character a one, or the letter I? most PINs have neither"),
        ("ABC23l", "is the sixth character the letter L, or a one? most PINs have neither"),
        ("abc234", "PINs are case-sensitive, and an emulator's PINs are upper case; this one is sent as typed"),
    ],
)
def test_a_likely_typing_error_is_pointed_out_and_sent(extcli, pin, warning):
    """Other deployments use all letters and digits."""
    result = extcli("pin", "validate", input=pin, exits=4)

    assert warning in result.stderr.splitlines()
    assert "was refused: 400" in result.stderr
    assert warning not in extcli("pin", "validate", "-q", input=pin).stderr


def test_a_wrong_pin_is_refused_with_advice(extcli):
    for verb in ("login", "validate"):
        result = extcli("pin", verb, input="ABC234", fails=4)

        assert "the PIN is wrong or has expired" in result.stderr
        assert "request a new one" in result.stderr


# On a terminal


def test_a_terminal_prompts_for_the_pin(extcli):
    pin = request_pin(extcli)

    with Terminal("pin", "login") as terminal:
        terminal.read_until("The PIN that the extension shows: ")
        terminal.type(f"{pin}\n")
        assert 0 == terminal.wait()
    assert "the refresh token is stored in" in terminal.screen


def test_a_mistyped_pin_can_be_retyped(extcli):
    ((pin, _),) = extcli("pin", "request", "--game").rows

    with Terminal("pin", "validate") as terminal:
        mistakes = {"": "no PIN was given", "ABC": "this is not a PIN", "ABC234": "the PIN is wrong or has expired"}
        for typed, message in mistakes.items():
            terminal.read_until("The PIN that the game shows: ")
            terminal.type(f"{typed}\n")
            assert message in terminal.read_until(message)
        terminal.type(f"{pin}\n")
        assert 0 == terminal.wait()
    assert 2 == terminal.screen.count("type the PIN that the game shows")
    assert "pipe" not in terminal.screen


def test_a_pin_can_be_retyped_three_times(environment):
    with Terminal("pin", "login") as terminal:
        for _ in range(4):
            terminal.read_until("shows: ")
            terminal.type("ABC234\n")
        assert 4 == terminal.wait()
    assert 4 == terminal.screen.count("shows: ")


def test_ctrl_d_at_the_prompt_exits_2(environment):
    with Terminal("pin", "login") as terminal:
        terminal.read_until("shows: ")
        terminal.type(CTRL_D)
        assert 2 == terminal.wait()


# `extcli pin check`: whether the PIN of a game's token was entered (ruling T5)


@pytest.fixture
def game(extcli) -> tuple[str, str]:
    """The PIN that a game shows, and its token."""
    [[pin, token]] = extcli("pin", "request", "--game", "-o", "plain").rows
    return pin, token


@pytest.mark.ruling("T5")
def test_a_token_counts_as_linked_once_its_pin_was_entered(extcli, game):
    pin, token = game
    before = extcli("pin", "check", input=token)
    extcli("pin", "validate", input=pin)

    assert (7, "false\n") == (before.exit_code, before.stdout)
    assert before.stderr.startswith("extcli: the token is not valid yet\n")
    assert "a broadcaster must validate its PIN first" in before.stderr
    assert "unauthorized" not in before.stderr
    after = extcli("pin", "check", input=f"{token}\n")
    assert (0, "true\n") == (after.exit_code, after.stdout)


@pytest.mark.ruling("T5")
def test_the_token_can_come_from_a_file(extcli, file, game):
    assert "false\n" == extcli("pin", "check", file(game[1])).stdout
    assert {"exists": False} == extcli("pin", "check", file(game[1]), "-o", "json").json


@pytest.mark.ruling("T5")
def test_a_check_sends_no_credentials_and_shows_no_token(extcli, game):
    result = extcli("pin", "check", "-v", input=game[1])

    assert "authorization" not in result.stderr
    assert game[1] not in result.stdout + result.stderr


@pytest.mark.ruling("T5")
@pytest.mark.parametrize("token", ["", "two words"])
def test_a_text_that_is_not_a_token_is_a_usage_error(extcli, token):
    assert 2 == extcli("pin", "check", input=token).exit_code
