"""A shell can close what a program reads and writes (`<&-`, `>&-`), as do some schedulers."""

from __future__ import annotations

import subprocess

import pytest

from support.program import PROGRAM


def closing(redirections: str, *args: str) -> subprocess.CompletedProcess[str]:
    """A run of the program by a shell, with these redirections."""
    line = f'"$0" "$@" {redirections}'
    return subprocess.run(["sh", "-c", line, PROGRAM, *args], capture_output=True, text=True, timeout=20)


@pytest.mark.parametrize("args", [("state", "set", "channel", "-"), ("api", "POST", "vote", "--input", "-")])
def test_a_value_cannot_be_read_from_a_closed_standard_input(environment, args):
    result = closing("<&-", *args)

    assert (2, "", "extcli: standard input is closed\n") == (result.returncode, result.stdout, result.stderr)


def test_a_pin_cannot_be_read_from_a_closed_standard_input(environment):
    result = closing("<&-", "pin", "login")

    assert (2, "") == (result.returncode, result.stdout)
    assert "extcli: standard input is closed" == result.stderr.splitlines()[0]


def test_many_votes_from_a_closed_standard_input_are_no_bug(environment):
    result = closing("<&-", "vote", "cast", "p", "--from", "-")

    assert result.returncode in (0, 2)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("form", ["table", "plain", "json", "jsonl"])
@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_results_and_remarks_that_nobody_takes_are_no_failure(environment, redirections, form):
    result = closing(redirections, "vote", "rm", "-o", form)

    assert 0 == result.returncode
    assert "Traceback" not in result.stderr


def test_an_error_keeps_its_exit_code_when_nobody_can_read_it(environment):
    assert 2 == closing(">&- 2>&-", "vote", "gett").returncode
    assert 3 == closing(">&- 2>&-", "vote", "get", "--url", "http://127.0.0.1:1").returncode
