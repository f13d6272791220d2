"""The installed program as its own process: terminals, pipes, interrupts, and what it imports."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest

from support.profile_files import write_profiles
from support.program import PROGRAM

LATE = {"emulator", "litestar", "uvicorn", "msgspec", "websockets", "platformdirs", "filelock", "tomlkit", "tomllib"}


def on_a_terminal(*args: str, **variables: str) -> str:
    """What the program writes to a terminal of 80 columns."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **variables}
    process = subprocess.Popen([PROGRAM, *args], stdout=terminal, stderr=terminal, stdin=terminal, env=environment)
    os.close(terminal)
    written = b""
    try:
        while chunk := os.read(controller, 65536):
            written += chunk
    except OSError:  # the terminal's other end has closed
        pass
    process.wait(timeout=20)
    os.close(controller)
    return written.decode()


def imported_by(*args: str) -> set[str]:
    """The top-level modules that a run of the program imports."""
    code = "import sys; from extcli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    process = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=20)
    assert 0 == process.returncode
    return {name.partition(".")[0] for name in process.stderr.split()}


@pytest.fixture
def poll(extcli) -> None:
    for user in range(3):
        extcli("vote", "cast", "--value", "1", "--as", f"viewer:U{user}")


@pytest.mark.usefixtures("poll")
def test_a_terminal_gets_a_table_and_a_pipe_tabs(environment, shell):
    assert "█" in on_a_terminal("vote", "get")
    assert b"1\t3\n" == shell("vote", "get").communicate(timeout=20)[0]


@pytest.mark.usefixtures("poll")
def test_json_is_the_same_bytes_on_a_terminal(environment, shell):
    piped = shell("vote", "get", "-o", "json").communicate(timeout=20)[0].decode()

    assert piped == on_a_terminal("vote", "get", "-o", "json").replace("\r\n", "\n")


@pytest.mark.usefixtures("poll")
def test_no_color_is_honoured(environment):
    assert "\x1b[" in on_a_terminal("vote", "get")
    assert "\x1b[3" not in on_a_terminal("vote", "get", NO_COLOR="1")


def test_a_remark_for_people_goes_to_standard_error(environment, shell):
    process = shell("vote", "rm", "-o", "table")

    assert (b"", b"deleted poll default\n") == process.communicate(timeout=20)


def test_progress_shows_on_a_terminal_only(environment, tmp_path):
    (tmp_path / "ballots.csv").write_text("U1,1\n" * 100)

    assert "100 sent, 100 accepted, 0 refused" in on_a_terminal("vote", "cast", "--from", str(tmp_path / "ballots.csv"))


def test_a_reader_that_leaves_early_is_no_failure(extcli, shell, tmp_path):
    """`extcli vote logs | head -1`"""
    lines = "".join(f"U{index},1\n" for index in range(3000))
    extcli("vote", "cast", "--from", "-", input=lines)

    process = shell("vote", "logs")
    assert process.stdout.readline().endswith(b"\n")
    process.stdout.close()

    assert 0 == process.wait(timeout=20)
    assert b"" == process.stderr.read()


def test_a_reader_that_left_before_the_first_line_is_no_failure_either(shell):
    reader, writer = os.pipe()
    os.close(reader)

    process = shell("vote", "get", "-o", "json", stdout=writer)
    os.close(writer)

    assert (0, b"") == (process.wait(timeout=20), process.stderr.read())


@pytest.mark.usefixtures("poll")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_said_in_one_line(environment, unbuffered):
    with open("/dev/full", "wb") as full:
        process = subprocess.run(
            [PROGRAM, "vote", "get"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            timeout=20,
        )

    assert (1, b"extcli: cannot write the output") == (process.returncode, process.stderr.splitlines()[0])
    assert b"Traceback" not in process.stderr


def test_an_interrupt_while_waiting_is_130_without_a_traceback(shell, answering):
    process = shell("wait", "--ready", "-v", "--url", "http://127.0.0.1:1")
    assert process.stderr.readline().startswith(b"> GET")

    process.send_signal(signal.SIGINT)

    assert 130 == process.wait(timeout=20)
    assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("args", [["--help"], ["vote", "--help"], ["vote", "get"], ["vote", "get", "-o", "json"]])
def test_the_service_is_not_imported_by_help_or_by_commands_over_http(environment, args):
    assert not LATE & imported_by(*args)


def test_a_profile_is_read_without_what_edits_it(environment):
    write_profiles(dev={"channel": "7"})

    assert not {"tomlkit", "pydantic"} & imported_by("vote", "get", "-p", "dev")


def test_help_imports_neither_httpx_nor_rich():
    assert not {"httpx", "rich", "jwt"} & imported_by("--help")


@pytest.mark.parametrize("args", [["rank", "submit", "--key", b"\xff"], ["vote", "get", b"\xff"]])
def test_bytes_that_are_not_utf_8_are_wrong_usage(environment, args):
    process = subprocess.run([PROGRAM, *args], capture_output=True, timeout=20)

    assert 2 == process.returncode
    assert b"not UTF-8" in process.stderr


def test_a_terminal_that_knows_ascii_only_is_served(environment):
    process = subprocess.run(
        [PROGRAM, "vote", "cast", "--value", "3", "-o", "table"],
        capture_output=True,
        timeout=20,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
    )

    assert (0, b"") == (process.returncode, process.stderr)
