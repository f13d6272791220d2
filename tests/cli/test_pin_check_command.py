"""`extcli pin check`: whether the PIN of a game's token was entered (ruling T5)."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ruling("T5")


@pytest.fixture
def game(extcli) -> tuple[str, str]:
    """The PIN that a game shows, and its token."""
    [[pin, token]] = extcli("pin", "request", "--game", "-o", "plain").rows
    return pin, token


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


def test_the_token_can_come_from_a_file(extcli, file, game):
    assert "false\n" == extcli("pin", "check", file(game[1])).stdout
    assert {"exists": False} == extcli("pin", "check", file(game[1]), "-o", "json").json


def test_a_check_sends_no_credentials_and_shows_no_token(extcli, game):
    result = extcli("pin", "check", "-v", input=game[1])

    assert "authorization" not in result.stderr
    assert game[1] not in result.stdout + result.stderr


@pytest.mark.parametrize("token", ["", "two words"])
def test_something_else_than_a_token_is_a_usage_error(extcli, token):
    assert 2 == extcli("pin", "check", input=token).exit_code
