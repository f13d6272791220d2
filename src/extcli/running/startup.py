"""The parts of a run that are equal on all systems: readiness of the service, errors, and time limits."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from typing import Final

from extcli import clock
from extcli.api import local_http
from extcli.errors import CliError
from extcli.running.failure_report import Log

READY_INTERVAL: Final = 0.02
"""Seconds between two questions whether a service is ready."""
_READY_TIMEOUT: Final = 10.0
_SLOW_START: Final = 5.0
"""Seconds until a note says why the service is not ready."""
STOP_TIMEOUT: Final = 60.0
"""Seconds until a service that does not stop is killed. It may have to write an export."""
GRACE: Final = 10.0
"""Seconds that a command has to end by itself after its service has died."""
_LOG_LINES: Final = 20
_FIRST_LINE: Final = re.compile(rb"listening on (https?://\S+)\r?\n")
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class CannotRun(CliError):
    """The command was not started. `exit_code` is 127 if it was not found, otherwise 126, as in a shell."""

    def __init__(self, name: str, error: OSError) -> None:
        absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
        super().__init__(f"{name}: {'command not found' if absent else error.strerror}")
        self.exit_code = _NOT_FOUND if absent else _NOT_EXECUTABLE  # type: ignore[assignment]


class Readiness:
    """Follows a service from its start until it is ready."""

    def __init__(self, note: Callable[[str], object]) -> None:
        """`note` tells the user why a slow start takes so long."""
        self._note = note
        self._since = clock.elapsed()
        self._was_noted = False
        self._printed = b""
        self.url = ""
        """Its URL, once it listens."""

    def printed(self, data: bytes) -> None:
        """Read what the service has printed. Only its first line matters."""
        self._printed += data if len(self._printed) < 4096 else b""
        found = _FIRST_LINE.match(self._printed)
        self.url = found[1].decode() if found else ""

    def is_reached(self) -> bool:
        """Return whether the listening service says that it is ready."""
        reason = _problem(self.url)
        if reason and not self._was_noted and clock.elapsed() - self._since > _SLOW_START:
            self._was_noted = True
            self._note(f"waiting for the service to be ready: {reason}")
        return not reason


def notes_of_death(code: int, log: Log) -> list[str]:
    """Return what to tell the user when the service has died while the command ran."""
    notes = [f"the service died with exit code {code} while the command ran, so the command is ended"]
    if not log.is_shown and (last := log.tail(_LOG_LINES)):
        notes.append("\n  ".join(["the service's log ends with:", *last]))
    return notes


def _problem(url: str) -> str:
    """Return why the service at this URL is not ready: the body of its response, or the error. Empty if it is ready."""
    try:
        response = local_http.get(url, "/_emulator/ready", seconds=_READY_TIMEOUT)
    except local_http.Failed as failed:
        return str(failed)
    return "" if response.status == 200 else response.body.decode(errors="replace")
