"""`extcli exec` on a terminal: the command gets the keyboard, Ctrl-C and Ctrl-Z."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from support.program import PROGRAM
from support.terminal import Terminal

pytestmark = pytest.mark.long
CTRL_C, CTRL_Z = "\x03", "\x1a"


class Shell(Terminal):
    """An interactive bash on a terminal."""

    def __init__(self) -> None:
        path = f"{PROGRAM.parent}:{os.environ['PATH']}"
        super().__init__("--norc", "--noprofile", "-i", program="bash", PS1="$ ", PATH=path)
        self.read_until("$ ")

    def run(self, command: str) -> None:
        """Type a command."""
        self.type(f"{command}\n")


@pytest.fixture
def shell() -> Iterator[Shell]:
    with Shell() as shell:
        yield shell


def test_the_command_gets_the_keyboard_ctrl_c_and_ctrl_z_and_the_shell_its_terminal_back(shell: Shell):
    # The command reads the keyboard
    shell.run("extcli exec -q -- sh -c 'echo rea''dy; read line; echo got $line'; echo co''de $?")
    shell.read_until("ready")
    shell.type("hello\n")

    assert "got hello" in shell.read_until("code 0")

    # Ctrl c ends the command and the shell gets the terminal back
    shell.run("extcli exec -q -- sh -c 'echo rea''dy; exec sleep 60'; echo co''de $?")
    shell.read_until("ready")
    shell.type(CTRL_C)
    shell.read_until("code 130")
    shell.run("echo al''ive")

    shell.read_until("alive")

    # Ctrl c that the command handles does not end the service
    program = (
        "import os, signal, urllib.request; signal.pthread_sigmask(signal.SIG_BLOCK, [2]); print('rea' + 'dy');"
        "signal.sigwait([2]); print(urllib.request.urlopen(os.environ['EXTCLI_URL'] + '/_emulator/live').status)"
    )
    shell.run(f"extcli exec -q -- {sys.executable} -uc \"{program}\"; echo co''de $?")
    shell.read_until("ready")
    shell.type(CTRL_C)

    assert "200" in shell.read_until("code 0")

    # Ctrl z stops the run and fg continues it
    shell.run("extcli exec -q -- sh -c 'echo rea''dy; read line; echo got $line'; echo co''de $?")
    shell.read_until("ready")
    shell.type(CTRL_Z)
    shell.read_until("Stopped")
    shell.run("fg")
    shell.read_until("extcli exec")
    shell.type("hello\n")

    shell.read_until("got hello")
