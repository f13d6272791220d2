"""Runs `extcli exec` as a process, and looks for what it leaves behind."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from support import preloaded

TIMEOUT = 60
"""Seconds for a run to end."""


class ExecProcess:
    """A running `extcli exec`."""

    def __init__(self, *args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
        self.process = preloaded.start(["exec", *args], {**kept, **(env or {})}, cwd)

    def line(self) -> str:
        """Return the next line that the command prints."""
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; return exit code, standard output and standard error."""
        with self.process:
            printed, log = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode is not None
        return self.process.returncode, printed, log

    def left(self) -> list[str]:
        """Return the processes of this run, which are in one session, that are still there, by name."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                name, _, rest = (each / "stat").read_text().partition("(")[2].rpartition(") ")
                state, _, _, session, *_ = rest.split()
                if state != "Z" and int(session) == self.process.pid:
                    found.append(name)
        return found


def run_exec(*args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> tuple[int, str, str]:
    """Run `extcli exec` to its end; return exit code, standard output and standard error."""
    return ExecProcess(*args, env=env, cwd=cwd).end()


def refuses(port: int) -> bool:
    """Return whether nothing listens on this port of the loopback address."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the listener was closed while this connected
        pass
    return False
