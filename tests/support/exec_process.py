"""Runs `extcli exec` as a process, and looks for what it leaves behind."""

from __future__ import annotations

import os
import socket
import subprocess
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.program import PROGRAM

MARK = "EXTCLI_RUN_OF_THE_TESTS"
"""A variable that every process of a run has; the system shows it in /proc."""
TIMEOUT = 60
"""Seconds for a run to end."""


class ExecProcess:
    """A running `extcli exec`."""

    def __init__(self, *args: str, env: Mapping[str, str] | None = None, **settings: Any) -> None:
        self._mark = uuid.uuid4().hex
        variables = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        self.process = subprocess.Popen(
            [PROGRAM, "exec", *args], env={**variables, MARK: self._mark, **(env or {})}, text=True, **pipes | settings
        )

    def line(self) -> str:
        """Return the next line that the command prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; return exit code, standard output and standard error."""
        printed, log = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, printed, log

    def left(self) -> list[str]:
        """Return the processes of this run that are still there, by name."""
        mark = f"{MARK}={self._mark}".encode()
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (each / "environ").read_bytes():
                    found.append((each / "comm").read_text().strip())
        return found


def run_exec(*args: str, **settings: Any) -> tuple[int, str, str]:
    """Run `extcli exec` to its end; return exit code, standard output and standard error."""
    return ExecProcess(*args, **settings).end()


def refuses(port: int) -> bool:
    """Return whether nothing listens on this port of the loopback address."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the listener was closed while this connected
        pass
    return False
