"""Somebody at a terminal: reads what the program shows, and types."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from types import TracebackType
from typing import Self

from support.program import PROGRAM

WITHIN = 20.0
"""Seconds in which what is waited for must show."""
CTRL_D = "\x04"


class Terminal:
    """The program on a terminal of its own, standard output and standard error on the same screen."""

    def __init__(self, *args: str, **variables: str) -> None:
        self._controller, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [PROGRAM, *args],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "dumb", "COLUMNS": "200", **variables},
            start_new_session=True,
        )
        os.close(terminal)
        self.screen = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait(WITHIN)
        os.close(self._controller)

    def read_until(self, text: str) -> str:
        """Read on until this shows, behind what was waited for before; returns what came up to its end."""
        while text not in self.screen[self._seen :]:
            assert self._read(), f"{text!r} did not show: {self.screen!r}"
        start, self._seen = self._seen, self.screen.index(text, self._seen) + len(text)
        return self.screen[start : self._seen]

    def type(self, text: str) -> None:
        """Type this, the key at its end included."""
        os.write(self._controller, text.encode())

    def wait(self) -> int:
        """Read to the end; returns the exit code."""
        while self._read():
            pass
        return self.process.wait(WITHIN)

    def _read(self) -> str:
        ready, _, _ = select.select([self._controller], [], [], WITHIN)
        try:
            chunk = os.read(self._controller, 65536).decode() if ready else ""
        except OSError:  # the program has ended
            chunk = ""
        self.screen += chunk
        return chunk
