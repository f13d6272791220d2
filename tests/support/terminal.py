"""Runs the program on a pseudo-terminal, to read its screen and type."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from support.process import wait_until
from support.program import PROGRAM

TIMEOUT = 60
"""Seconds to wait for output."""
CTRL_D = "\x04"


class Terminal:
    """A program, `extcli` by default, on its own terminal, with both outputs on one screen."""

    def __init__(self, *args: str, program: str | Path = PROGRAM, reads_input: bool = True, **variables: str) -> None:
        self._controller, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [program, *args],
            stdin=terminal if reads_input else subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "dumb", "COLUMNS": "200", **variables},
            start_new_session=True,
            preexec_fn=partial(fcntl.ioctl, terminal, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        self.screen = ""
        self._read_to = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the terminal."""
        controller, self._controller = self._controller, -1
        if controller >= 0:
            os.close(controller)

    def read_until(self, text: str) -> str:
        """Read until `text` appears after the last text read; return the output up to and including it."""
        while text not in self.screen[self._read_to :]:
            assert self._read(), f"{text!r} did not appear: {self.screen!r}"
        start, self._read_to = self._read_to, self.screen.index(text, self._read_to) + len(text)
        return self.screen[start : self._read_to]

    def type(self, text: str) -> None:
        """Type `text`. It must contain the Enter key as a newline."""
        os.write(self._controller, text.encode())

    def interrupt(self) -> None:
        """Send SIGINT once the program waits for input. Before, Python can lose it between its check and the read."""
        waiting = psutil.Process(self.process.pid)
        wait_until(lambda: waiting.status() == psutil.STATUS_SLEEPING)
        self.process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        """Read until the program ends, and return its exit code."""
        while self._read():
            pass
        return self.process.wait(TIMEOUT)

    def _read(self) -> str:
        ready, _, _ = select.select([self._controller], [], [], TIMEOUT)
        try:
            chunk = os.read(self._controller, 65536).decode() if ready else ""
        except OSError:  # the program has ended
            chunk = ""
        self.screen += chunk
        return chunk
