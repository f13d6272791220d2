"""Commands as processes: terminals, pipes, signals, closed streams, and imports."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from support.profile_files import write_profiles
from support.program import PROGRAM, http_response

LATE = {
    *("emulator", "jmespath", "litestar", "uvicorn", "msgspec", "websockets", "platformdirs", "filelock", "tomlkit"),
    "pydantic",
}
IMPORTS = """
import json, os, sys
from extcli.main import main
profiles, *lines = sys.argv[1:]
found = {}
for line in lines:
    if "-p" in line:
        os.environ["EXTCLI_CONFIG"] = profiles
    assert main(line.split()) == 0
    names = [name for name in sys.modules if name != "emulator" and not name.startswith("emulator.contract")]
    found[line] = sorted({name.partition(".")[0] for name in names})
print(json.dumps(found), file=sys.stderr)
"""


def on_a_terminal(*args: str, **variables: str) -> str:
    """Return the output of the program on a terminal with 80 columns."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **variables}
    process = subprocess.Popen([PROGRAM, *args], stdout=terminal, stderr=terminal, stdin=terminal, env=environment)
    os.close(terminal)
    written = b""
    try:
        while chunk := os.read(controller, 65536):
            written += chunk
    except OSError:  # the program has ended
        pass
    process.wait(timeout=60)
    os.close(controller)
    return written.decode()


@pytest.fixture
def poll(extcli) -> None:
    for user in range(3):
        extcli("vote", "cast", "--value", "1", "--as", f"viewer:U{user}")


@pytest.mark.usefixtures("poll")
def test_a_terminal_gets_a_colored_table_and_a_pipe_gets_tabs(extcli, shell):
    assert "\x1b[" in on_a_terminal("vote", "get")
    assert "1\t3\n" == shell("vote", "get").communicate(60)[0]
    on_screen = {"screen": True, "env": {"TERM": "xterm-256color", "NO_COLOR": "1"}}
    assert "\x1b[3" not in extcli("vote", "get", **on_screen).stdout
    assert extcli("vote", "get", "-o", "json").stdout == extcli("vote", "get", "-o", "json", **on_screen).stdout


def test_output_comes_before_the_note_that_follows_it(environment):
    shown = on_a_terminal("vote", "cast", "--value", "3", "--dry-run", PYTHONUNBUFFERED="")

    assert shown.startswith("POST http://")
    assert shown.endswith('{"value": 3}\r\n\r\nnothing was changed\r\n')


def test_a_reader_that_closes_early_is_not_an_error(shell, answering):
    """`extcli vote logs | head -1`"""
    votes = [{"identifier": f"U{index}", "opaque": "", "value": 1, "timestamp": index} for index in range(10_000)]
    url = answering(http_response("200 OK", json.dumps({"result": votes})))

    process = shell("vote", "logs", "--url", url, EXTCLI_TOKEN="a.b.c")
    assert process.stdout.readline().endswith("\n")
    process.stdout.close()

    assert 0 == process.wait(timeout=60)
    assert "" == process.stderr.read()


def test_commands_import_only_what_they_need(environment, monkeypatch, tmp_path):
    """One process runs these commands in turn; what one of them imports, the next ones have, too."""
    profiles = write_profiles(dev={"channel": "7"})
    monkeypatch.setenv("EXTCLI_CONFIG", str(tmp_path / "absent.toml"))
    lines = ["vote --help", "vote get", "vote get -o json", "vote get -p dev"]

    run = subprocess.run([sys.executable, "-c", IMPORTS, profiles, *lines], capture_output=True, text=True, timeout=60)

    imported = {line: set(names) for line, names in json.loads(run.stderr).items()}
    assert not {"httpx", "rich", "jwt"} & imported["vote --help"]
    assert "tomllib" not in imported["vote get -o json"]
    assert {} == {line: LATE & names for line, names in imported.items() if LATE & names}


def test_a_terminal_with_ascii_only_is_supported(environment):
    process = subprocess.run(
        [PROGRAM, "vote", "cast", "--value", "3", "-o", "table"],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
    )

    assert (0, b"") == (process.returncode, process.stderr)


# Text from others

UNSAFE = "\u009b31m \u202eabc\u2066 \u061c\x7f"
RAW_JSON = json.dumps({"key": UNSAFE}, ensure_ascii=False)
"""JSON in which these characters stand unescaped, as a service may send it."""


def is_safe(text: str) -> bool:
    return all(character.isprintable() or character in "\r\n\t" for character in text)


@pytest.mark.parametrize("form", ["json", "jsonl", "plain", "table"])
def test_a_terminal_gets_no_control_character_of_a_response(extcli, answering, form):
    url = answering(http_response("200 OK", RAW_JSON))

    shown = extcli("api", "GET", "x", "--no-auth", "--url", url, "-o", form, screen=True, env={"NO_COLOR": "1"}).stdout

    assert is_safe(shown), shown
    assert {"key": UNSAFE} == json.loads(shown)


def test_a_terminal_gets_no_control_character_of_an_error(extcli, answering):
    url = answering(http_response("400 Bad Request", RAW_JSON), http_response("400 Bad Request", RAW_JSON))

    for args in (("api", "GET", "x", "--no-auth"), ("user", "info")):
        shown = extcli(*args, "--url", url, "-o", "json", screen=True, env={"EXTCLI_TOKEN": "a.b.c"}, exits=4)
        assert is_safe(shown.stdout + shown.stderr)


def test_a_terminal_gets_bytes_that_are_not_text_as_question_marks(extcli, answering):
    url = answering(http_response("200 OK", b"\x9b31m\x1b[2J\n", "application/octet-stream"))

    assert "\ufffd31m\\u001b[2J\n" == extcli("api", "GET", "x", "--no-auth", "--url", url, screen=True).stdout


def test_a_pipe_gets_the_json_of_a_response_unchanged(extcli, answering):
    url = answering(http_response("200 OK", RAW_JSON))

    assert RAW_JSON + "\n" == extcli("api", "GET", "x", "--no-auth", "--url", url, "-o", "json").stdout


# Standard streams that the shell or a scheduler has closed (`<&-`, `>&-`)


def test_a_process_with_closed_streams_keeps_its_exit_code(environment):
    for redirections, args, code in (
        ("<&-", ("state", "set", "channel", "-"), 2),
        ("<&- >&- 2>&-", ("vote", "rm", "-o", "table"), 0),
        (">&- 2>&-", ("vote", "get", "--url", "http://127.0.0.1:1"), 3),
    ):
        line = f'"$0" "$@" {redirections}'
        ended = subprocess.run(["sh", "-c", line, PROGRAM, *args], capture_output=True, timeout=60)
        assert (code, False) == (ended.returncode, b"Traceback" in ended.stderr)


# SIGTERM ends a command as Ctrl-C does: it says how far it came, and exits 130


WAITING = {
    "listen": "ready: ",
    "logs --follow -v": "> ",
    "simulate crowd --viewers 500 --mix 0:1 --rate 2 -v": "> ",
}
"""Commands that last, with what they print to standard error when they have begun."""


@pytest.mark.parametrize("line", WAITING)
@pytest.mark.usefixtures("environment")
def test_sigterm_interrupts_a_command_that_lasts(line: str):
    """A script's background command ignores SIGINT."""
    command = ["sh", "-c", 'trap "" INT; exec "$0" "$@"', PROGRAM, *line.split()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert any(said.startswith(WAITING[line]) for said in process.stderr)
        process.terminate()
        _, said = process.communicate(timeout=60)

    assert 130 == process.returncode, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("command", "text", "sent"),
    [("vote cast", "U1,3\nU1\n", signal.SIGTERM), ("accumulate add", "1\nnonsense\n", signal.SIGINT)],
)
def test_an_ended_bulk_run_says_where_to_resume(shell, command: str, text: str, sent: signal.Signals):
    process = shell(*command.split(), "--from", "-", "-o", "jsonl")
    process.stdin.write(text)
    assert process.stdout.readline().startswith('{"line":2')

    process.send_signal(sent)
    said = process.stderr.read()

    assert 130 == process.wait(60)
    assert "interrupted; all lines up to " in said
    assert "Traceback" not in said
