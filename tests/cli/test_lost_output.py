"""Output that cannot be written, as the disk is full or the shell has closed it: one message, and exit code 2."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from cli.test_csv_output import LISTS
from extcli.app import NOUNS
from extcli.main import main
from support.program import PROGRAM

OTHERS = [
    *("vote get lunch", "vote config lunch", "vote cast lunch 1", "rank submit colour --key x", "clock now"),
    *("codes redeemed", "codes eligible", "state get channel", "store-config get channel", "json-store get none"),
    *("user info", "token mint --as viewer:U7", "token sandbox", "pin request", "pin status", "config get url"),
    *("api GET vote", "connect env", "explain P1", "status", "doctor", "fault list", "completion bash", "help all"),
    *("help exit-codes", "version", "whoami", "profile show", "config path", "wait mark", "snapshot save -"),
    *("vote get lunch --query stats.count", "vote cast --from - -o json", "trivia leaderboard", "trivia team"),
]


def run(output: str, *args: str) -> tuple[int, str]:
    """Run a command in this process whose standard output is closed or a full disk. Return its exit code and errors."""
    with pytest.MonkeyPatch.context() as patched, open("/dev/full", "w") as full, open("/dev/null") as empty:
        stream = full if output == "full" else None
        patched.setattr(sys, "stdin", empty)
        patched.setattr(sys, "stdout", stream)
        patched.setattr(sys, "__stdout__", stream)
        patched.setattr(sys, "stderr", stderr := io.StringIO())
        code = main(args)
        sys.stdout.flush()  # nothing is left that fails when the process ends
        if stream:
            patched.setattr(full, "flush", lambda: None, raising=False)
        return code, stderr.getvalue()


CAUSES = {"full": "No space left on device", "closed": "standard output is closed"}


def check(output: str, *args: str) -> None:
    code, said = run(output, *args)

    assert 2 == code, (args, said)
    assert 1 == said.count("cannot write the output"), (args, said)
    assert CAUSES[output] in said
    assert "bug" not in said


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(("form", "output"), [("table", "full"), ("csv", "closed")])
def test_every_command_that_prints_says_that_its_output_is_lost(extcli, output: str, form: str):
    checked = 0
    for line in [*LISTS, *OTHERS]:
        args = [*line.split(), *(["-o", form] if "-o" not in line and "help" not in line else [])]
        usual = extcli(*args)
        if usual.stdout and usual.exit_code == 0:
            check(output, *args)
            checked += 1
    assert checked > len(LISTS)


@pytest.mark.parametrize("output", CAUSES)
def test_every_help_says_that_its_output_is_lost(environment, output: str):
    for noun in ("", *NOUNS):
        check(output, *noun.split(), "--help")


@pytest.mark.parametrize("output", CAUSES)
def test_a_bulk_run_whose_refusals_cannot_be_written_says_where_to_resume(extcli, output: str, lines):
    code, said = run(output, "vote", "cast", "--from", lines("U1,300", "U2,3"), "-o", "jsonl", "--concurrency", "1")

    assert (2, 1) == (code, said.count("cannot write the output"))
    assert "stopped; all lines up to " in said


@pytest.mark.parametrize("output", CAUSES)
def test_an_error_before_the_output_keeps_its_exit_code(environment, output: str):
    assert 3 == run(output, "vote", "get", "--url", "http://127.0.0.1:1")[0]
    assert 2 == run(output, "vote", "gett")[0]
    assert 4 == run(output, "vote", "config", "none")[0]


@pytest.mark.parametrize("output", CAUSES)
def test_a_command_that_prints_nothing_succeeds_without_an_output(environment, output: str):
    assert (0, "") == run(output, "state", "set", "channel", "a=1", "-o", "plain")


@pytest.mark.parametrize(
    ("command", "redirection", "unbuffered"),
    [("--help", ">/dev/full", ""), ("vote get lunch", ">/dev/full", "1"), ("vote get lunch", ">&-", "")],
)
def test_a_shell_gets_exit_code_2(extcli, monkeypatch, redirection: str, command: str, unbuffered: str):
    extcli("vote", "cast", "lunch", "1")
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)

    result = subprocess.run(["sh", "-c", f'"$0" {command} {redirection}', PROGRAM], capture_output=True, timeout=60)

    assert (2, b"extcli: cannot write the output") == (result.returncode, result.stderr.splitlines()[0])
    assert 2 == len(result.stderr.splitlines())
