"""PINs come from a pipe or a prompt, never from the command line (rulings T1, T3)."""

from __future__ import annotations

import json

import pytest

from support.terminal import CTRL_D, Terminal


def request_pin(extcli) -> str:
    return extcli("pin", "request").stdout.strip()


@pytest.mark.parametrize("verb", ["login", "validate"])
def test_a_pin_on_the_command_line_is_refused(extcli, verb):
    result = extcli("pin", verb, "-v", "A7K9QF", fails=2)

    assert [
        "extcli: a PIN cannot be given on the command line",
        "  process lists and shell histories show it",
        "  type it at the prompt, or pipe it in",
    ] == result.stderr.splitlines()


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
        ("abc234", "PINs are case-sensitive, and those of an emulator are upper case; this one is sent as typed"),
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
        for typed, message in (("ABC", "this is not a PIN"), ("ABC234", "the PIN is wrong or has expired")):
            terminal.read_until("The PIN that the game shows: ")
            terminal.type(f"{typed}\n")
            assert message in terminal.read_until(message)
        terminal.type(f"{pin}\n")
        assert 0 == terminal.wait()


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


def test_a_refused_pin_is_explained_as_json(extcli):
    result = extcli("pin", "login", "-o", "json", input="ABC234")

    assert (4, 400) == tuple(json.loads(result.stderr)["error"][name] for name in ("exit_code", "status"))
