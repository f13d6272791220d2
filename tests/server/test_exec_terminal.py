"""`extcli exec` on a terminal: the command gets the keyboard, Ctrl-C and Ctrl-Z."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
from collections.abc import Iterator

import pytest

from support.program import PROGRAM

pytestmark = pytest.mark.long
CTRL_C, CTRL_Z = b"\x03", b"\x1a"
TIMEOUT = 30.0


class Shell:
    """An interactive bash on a new terminal."""

    def __init__(self) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ |= {"PS1": "$ ", "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "TERM": "dumb"}
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self._seen = ""

    def type(self, data: bytes) -> None:
        """Type these bytes."""
        os.write(self._terminal, data)

    def read_until(self, pattern: str) -> str:
        """Return what appears on the terminal up to a match of this pattern, without what was read before."""
        while not (found := re.search(pattern, self._seen)):
            ready, _, _ = select.select([self._terminal], [], [], TIMEOUT)
            assert ready, f"no {pattern!r} in {self._seen!r}"
            self._seen += os.read(self._terminal, 4096).decode(errors="replace").replace("\r", "")
        shown, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return shown

    def run(self, command: str) -> None:
        """Type a command."""
        self.type(command.encode() + b"\n")

    def close(self) -> None:
        os.close(self._terminal)
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell() -> Iterator[Shell]:
    """A shell that has printed its prompt."""
    shell = Shell()
    shell.read_until(r"\$ ")
    yield shell
    shell.close()


def test_the_command_reads_the_keyboard(shell: Shell):
    shell.run("extcli exec -q -- sh -c 'echo rea''dy; read line; echo got $line'; echo co''de $?")
    shell.read_until("ready")
    shell.type(b"hello\n")

    assert "got hello" in shell.read_until("code 0")


def test_ctrl_c_ends_the_command_and_the_shell_gets_the_terminal_back(shell: Shell):
    shell.run("extcli exec -q -- sh -c 'echo rea''dy; exec sleep 60'; echo co''de $?")
    shell.read_until("ready")
    shell.type(CTRL_C)
    shell.read_until("code 130")
    shell.run("echo al''ive")

    shell.read_until("alive")


def test_ctrl_c_that_the_command_handles_does_not_end_the_service(shell: Shell):
    program = (
        "import os, signal, urllib.request; signal.pthread_sigmask(signal.SIG_BLOCK, [2]); print('rea' + 'dy');"
        "signal.sigwait([2]); print(urllib.request.urlopen(os.environ['EXTCLI_URL'] + '/_emulator/live').status)"
    )
    shell.run(f"extcli exec -q -- {sys.executable} -uc \"{program}\"; echo co''de $?")
    shell.read_until("ready")
    shell.type(CTRL_C)

    assert "200" in shell.read_until("code 0")


def test_ctrl_z_stops_the_run_and_fg_continues_it(shell: Shell):
    shell.run("extcli exec -q -- sh -c 'echo rea''dy; read line; echo got $line'; echo co''de $?")
    shell.read_until("ready")
    shell.type(CTRL_Z)
    shell.read_until("Stopped")
    shell.run("fg")
    shell.read_until("extcli exec")
    shell.type(b"hello\n")

    shell.read_until("got hello")
