"""A PIN as people hand it over: by a pipe or at a terminal, never as an argument (rulings T1, T3)."""

from __future__ import annotations

import json

import pytest

from support.terminal import CTRL_D, Terminal


def requested(extcli) -> str:
    return extcli("pin", "request").stdout.strip()


@pytest.mark.parametrize("verb", ["login", "validate"])
def test_a_pin_is_not_taken_from_the_command_line(extcli, verb):
    result = extcli("pin", verb, "-v", "A7K9QF")

    assert (2, "") == (result.exit_code, result.stdout)
    assert [
        "extcli: a PIN is not taken from the command line",
        "  process lists and histories show it",
        "  type it when asked, or pipe it in",
    ] == result.stderr.splitlines()


def test_a_dash_means_standard_input(extcli):
    assert 0 == extcli("pin", "login", "-", input=f"  {requested(extcli)} \nmore\n").exit_code


@pytest.mark.parametrize("text", ["", "\n", "A7K9Q", "A7K9QFF", "A7K-QF", "A7K9QÄ", '{"pin":"A7K9QF"}', "A" * 1000])
@pytest.mark.parametrize("verb", ["login", "validate"])
def test_what_is_no_pin_is_not_sent_and_not_quoted(extcli, verb, text):
    result = extcli("pin", verb, "-v", input=text)

    assert (2, "") == (result.exit_code, result.stdout)
    assert ">" not in result.stderr
    assert not text.strip() or text.strip() not in result.stderr


@pytest.mark.parametrize(
    ("pin", "remark"),
    [
        ("ABO234", "is the third character the letter O, or a zero? PINs mostly have neither"),
        ("1BC234", "is the first character a one, or the letter I? PINs mostly have neither"),
        ("ABC23l", "is the sixth character the letter L, or a one? PINs mostly have neither"),
        ("abc234", "case matters, and it is sent as typed: the PINs of an emulator are upper case"),
    ],
)
def test_a_likely_slip_is_remarked_upon_and_sent_all_the_same(extcli, pin, remark):
    """Other deployments have PINs of any letters and digits."""
    result = extcli("pin", "validate", input=pin)

    assert 4 == result.exit_code
    assert remark in result.stderr.splitlines()
    assert "was refused: 400" in result.stderr
    assert remark not in extcli("pin", "validate", "-q", input=pin).stderr


def test_a_wrong_pin_is_refused_with_advice(extcli):
    for verb in ("login", "validate"):
        result = extcli("pin", verb, input="ABC234")

        assert (4, "") == (result.exit_code, result.stdout)
        assert "the PIN is wrong or has expired" in result.stderr
        assert "ask for a new one" in result.stderr


# On a terminal


def test_a_terminal_is_asked_for_the_pin(extcli):
    pin = requested(extcli)

    with Terminal("pin", "login") as terminal:
        terminal.read_until("The PIN that the extension shows: ")
        terminal.type(f"{pin}\n")
        assert 0 == terminal.wait()
    assert "the refresh token is kept in" in terminal.screen


def test_a_pin_that_was_mistyped_may_be_typed_again(extcli):
    ((pin, _),) = extcli("pin", "request", "--game").rows

    with Terminal("pin", "validate") as terminal:
        for typed, complaint in (("ABC", "this is no PIN"), ("ABC234", "the PIN is wrong or has expired")):
            terminal.read_until("The PIN that the game shows: ")
            terminal.type(f"{typed}\n")
            assert complaint in terminal.read_until(complaint)
        terminal.type(f"{pin}\n")
        assert 0 == terminal.wait()


def test_a_pin_may_be_typed_again_three_times(environment):
    with Terminal("pin", "login") as terminal:
        for _ in range(4):
            terminal.read_until("shows: ")
            terminal.type("ABC234\n")
        assert 4 == terminal.wait()
    assert 4 == terminal.screen.count("shows: ")


def test_who_types_no_pin_ends_the_question(environment):
    with Terminal("pin", "login") as terminal:
        terminal.read_until("shows: ")
        terminal.type(CTRL_D)
        assert 2 == terminal.wait()


def test_with_json_a_refused_pin_is_explained_as_json(extcli):
    result = extcli("pin", "login", "-o", "json", input="ABC234")

    assert (4, 400) == tuple(json.loads(result.stderr)["error"][name] for name in ("exit_code", "status"))
