"""Standard streams that the shell or a scheduler has closed (`<&-`, `>&-`)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from extcli.main import main
from support.program import PROGRAM


def closing(redirections: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a shell with these redirections."""
    line = f'"$0" "$@" {redirections}'
    return subprocess.run(["sh", "-c", line, PROGRAM, *args], capture_output=True, text=True, timeout=20)


def run_without(monkeypatch: pytest.MonkeyPatch, streams: tuple[str, ...], *args: str) -> int:
    """Run a command in this process without these streams, which Python sets to `None`. Return the exit code."""
    with monkeypatch.context() as patched:
        for name in streams:
            patched.setattr(sys, name, None)
            patched.setattr(sys, f"__{name}__", None)
        try:
            return main(args)
        finally:
            for name in streams:
                getattr(sys, name).close()


def test_a_value_from_a_closed_standard_input_is_a_usage_error(environment):
    result = closing("<&-", "state", "set", "channel", "-")

    assert (2, "", "extcli: standard input is closed\n") == (result.returncode, result.stdout, result.stderr)


@pytest.mark.parametrize("args", [("api", "POST", "vote", "--input", "-"), ("pin", "login")])
def test_every_command_reports_a_closed_standard_input(environment, monkeypatch, capsys, args):
    assert 2 == run_without(monkeypatch, ("stdin",), *args)

    stdout, stderr = capsys.readouterr()
    assert ("", "extcli: standard input is closed") == (stdout, stderr.splitlines()[0])


def test_votes_from_a_closed_standard_input_print_no_traceback(environment, monkeypatch, capsys):
    assert run_without(monkeypatch, ("stdin",), "vote", "cast", "p", "--from", "-") in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_output_streams_do_not_fail_a_command(environment, redirections):
    result = closing(redirections, "vote", "rm", "-o", "table")

    assert 0 == result.returncode
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("form", ["table", "plain", "json", "jsonl"])
@pytest.mark.parametrize("streams", [("stdout",), ("stderr",), ("stdin", "stdout", "stderr")], ids=" ".join)
def test_closed_output_streams_fail_no_format(environment, monkeypatch, capsys, streams, form):
    assert 0 == run_without(monkeypatch, streams, "vote", "rm", "-o", form)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "code"), [(("vote", "gett"), 2), (("vote", "get", "--url", "http://127.0.0.1:1"), 3)], ids=["usage", "url"]
)
def test_an_error_keeps_its_exit_code_if_its_streams_are_closed(environment, monkeypatch, args, code):
    assert code == run_without(monkeypatch, ("stdout", "stderr"), *args)


def test_a_process_with_closed_streams_keeps_its_exit_code(environment):
    assert 3 == closing(">&- 2>&-", "vote", "get", "--url", "http://127.0.0.1:1").returncode
