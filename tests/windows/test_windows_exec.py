"""`extcli exec` on Windows: exit codes, and what is left when it ends."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from signal import SIGINT

import pytest

from support.process import wait_until
from windows.conftest import TIMEOUT, Windows

WAIT = "import os, sys; print(os.getppid(), flush=True); sys.stdin.read()"
"""A command that prints the process id of its parent, and runs until its input ends."""
CHILD = f"import subprocess as s, sys; s.Popen([sys.executable, '-c', {WAIT!r}], stdout=s.DEVNULL); {WAIT}"
"""A command that starts another one, and does not wait for it."""
ROUNDS = 20


def of_runs(windows: Windows) -> list[str]:
    """Return the processes of all runs: services and commands."""
    return [each for each in windows.running() if "extcli.running.windows" in each or WAIT in each]


def left_behind(windows: Windows) -> list[Path]:
    """Return the folders that runs have made for their files."""
    return list(windows.folder.glob("temp/extcli-*"))


def start(windows: Windows, program: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start `extcli exec` with a Python program; return its process and its id on Windows once the program runs."""
    (windows.folder / "temp").mkdir(exist_ok=True)
    run = windows.start("-m", "extcli", "exec", "-q", "--", windows.program, "-c", program, TEMP=windows.path("temp"))
    assert run.stdout is not None
    return run, int(run.stdout.readline())


@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_the_commands(windows: Windows, code: int):
    program = f"import os, sys, urllib.request as r; r.urlopen(os.environ['EXTCLI_URL']); sys.exit({code})"

    windows.extcli("exec", "-q", "--", windows.program, "-c", program, fails=code)


def test_a_command_that_does_not_exist_is_127(windows: Windows):
    log = windows.extcli("exec", "-q", "--", "no-such-program", fails=127)

    assert "extcli exec: no-such-program: command not found" in log


def test_the_command_finds_the_service(windows: Windows):
    printed = windows.extcli(
        "exec", "-q", "--", windows.program, "-m", "extcli", "vote", "cast", "lunch", "--value", "3"
    )

    assert "3\t1\n" == printed


def test_a_second_ctrl_c_ends_the_command_and_the_service(windows: Windows):
    run, _ = start(windows, WAIT)
    with run:
        while run.poll() is None:
            run.send_signal(SIGINT)  # without a console, it reaches `exec` alone
            with suppress(subprocess.TimeoutExpired):
                run.wait(1)

    assert 130 == run.returncode
    wait_until(lambda: not of_runs(windows), lambda: of_runs(windows))
    assert [] == left_behind(windows)


def test_nothing_is_left_when_exec_is_killed(windows: Windows):
    for _ in range(ROUNDS):
        run, pid = start(windows, CHILD)
        with run:
            windows.terminate(pid)
            run.wait(TIMEOUT)

        wait_until(lambda: not of_runs(windows), lambda: of_runs(windows))
        wait_until(lambda: not left_behind(windows), lambda: left_behind(windows))


def test_processes_that_the_command_leaves_behind_end_with_exec(windows: Windows):
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WAIT!r}])"

    windows.extcli("exec", "-q", "--", windows.program, "-c", program)

    wait_until(lambda: not of_runs(windows), lambda: of_runs(windows))
