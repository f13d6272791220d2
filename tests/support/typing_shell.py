"""An interactive shell with completion of extcli, on a terminal: `Shell("zsh", …)`."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pexpect

SHELLS = ("bash", "zsh", "fish")
_PROMPT = "@@ "
_START = {
    "bash": ("--norc", "--noprofile", "-i"),
    "zsh": ("-f", "-i"),
    "fish": ("--no-config", "--interactive"),
}
_SETUP = {
    "bash": "PS1='@''@ '; bind 'set enable-bracketed-paste off'; source <(extcli completion bash)",
    "zsh": "PS1='@''@ '; unsetopt beep; autoload -Uz compinit; compinit -D; source <(extcli completion zsh)",
    "fish": (
        "function fish_prompt; echo -n '@''@ '; end; set -g fish_autosuggestion_enabled 0; "
        "extcli completion fish | source"
    ),
}
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07|[\x07\x0e\x0f\r\x08]")
TIMEOUT = 60


class Shell:
    """One shell. Close it after use."""

    def __init__(self, name: str, programs: Path, home: Path, variables: Mapping[str, str]) -> None:
        """`programs` is the folder of the program, `home` an empty folder."""
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), "/usr/bin", "/bin"])
        kept = {name: os.environ[name] for name in ("PYTHONPATH", "PYTHONPYCACHEPREFIX") if name in os.environ}
        environment = {**kept, "PATH": path, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8", **variables}
        self._terminal = pexpect.spawn(
            name, list(_START[name]), env=environment, cwd=str(home), encoding="utf-8", dimensions=(50, 200),
            timeout=TIMEOUT,
        )  # fmt: skip
        self._terminal.delaybeforesend = None
        self._name = name
        self._screen = ""
        self._marks = 0
        self.run(_SETUP[name])

    def run(self, line: str) -> None:
        """Run a command, and wait until it is done."""
        self._terminal.sendline(line)
        self._settle()

    def shown_after_tab(self, typed: str, expected: str) -> None:
        """Type this text and a tab, and wait until the line goes on as expected.

        Tab is typed again while nothing is shown: on a busy machine, a service may answer too late for a completion.
        """
        self._type(typed, "\t", expected, again="\t")

    def nothing_after_tab(self, typed: str) -> None:
        """Type this text and a tab, and wait until the shell shows the key after it: there is no candidate."""
        if self._name == "fish":  # which then flashes for a fifth of a second
            self._terminal.sendline(f"complete -C '{typed}'; echo se''ttled.")
            self._wait("settled.")
            self._wait(_PROMPT)
        else:
            self._type(typed, "\t%", "%")

    def _type(self, typed: str, keys: str, expected: str, again: str = "") -> None:
        self._terminal.send(typed)
        self._wait(typed[-3:])
        self._terminal.send(keys)
        self._wait(expected, again)
        self._terminal.send("\x15")
        self._settle()

    def _settle(self) -> None:
        """Run a command whose output differs from its text, and wait for the output."""
        self._marks += 1
        self._terminal.sendline(f"echo se''ttled{self._marks}.")
        self._wait(f"settled{self._marks}.")
        self._wait(_PROMPT)

    def _wait(self, text: str, again: str = "") -> None:
        """Read until the terminal shows this text. Type `again` after each 3 s in which it shows nothing."""
        deadline = time.monotonic() + TIMEOUT
        while text not in (shown := _ESCAPES.sub("", self._screen)):
            try:
                self._screen += self._terminal.read_nonblocking(1 << 16, 3)
            except pexpect.TIMEOUT:
                assert time.monotonic() < deadline, f"{text!r} is not in {self._screen!r}"
                self._terminal.send(again)
            except pexpect.EOF:
                raise AssertionError(f"{text!r} is not in {self._screen!r}") from None
        self._screen = shown.partition(text)[2]

    def close(self) -> None:
        """End the shell."""
        self._terminal.close(force=True)
