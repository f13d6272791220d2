"""Runs a command with a service: what is the same on all systems. `unix` and `windows` start, signal and end both."""

from __future__ import annotations

import errno
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from extcli import clock
from extcli.api import connection
from extcli.errors import CliError
from extcli.output.printer import write_stderr

GRACE_SECONDS: Final = 10.0
"""Seconds that a command has to end by itself after its service has died."""
POLL_SECONDS: Final = 0.01
"""Seconds between two looks at a service that starts or stops."""
_STOP_TIMEOUT: Final = 60.0
"""Seconds until a service that does not stop is killed. It may have to write an export."""
_READY_TIMEOUT: Final = 10.0
_SLOW_START: Final = 5.0
"""Seconds until a note says why the service is not ready."""
_FIRST_LINE: Final = re.compile(rb"listening on (https?://\S+)\r?\n")


def print_note(text: str) -> None:
    """Tell the user what happens in a run."""
    write_stderr([f"extcli exec: {text}"])


class CommandNotStarted(CliError):
    """The command was not started. `exit_code` is 127 if it was not found, otherwise 126, as in a shell."""

    def __init__(self, name: str, error: OSError) -> None:
        absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
        super().__init__(f"{name}: {'command not found' if absent else error.strerror}")
        self.exit_code = 127 if absent else 126  # type: ignore[assignment]


class ServiceLog:
    """Keeps what a service writes to standard error in a file without a name, and shows it unless it is quiet."""

    def __init__(self, directory: Path, *, shown: bool) -> None:
        self.is_shown = shown
        self._file = TemporaryFile(buffering=0, dir=directory)  # noqa: SIM115  (open as long as the process)

    def write(self, data: bytes) -> None:
        """Append text to the log."""
        with suppress(OSError):  # no space, or the reader of standard error has ended
            self._file.write(data)
        if self.is_shown:
            _write_stderr(data)

    def show(self) -> None:
        """Print the log to standard error, unless it was already printed."""
        for data in () if self.is_shown else self.parts():
            _write_stderr(data)

    def parts(self) -> Iterator[bytes]:
        """Yield the log in parts. Raises `OSError`."""
        self._file.seek(0)
        while data := self._file.read(1 << 16):
            yield data

    def tail(self) -> list[str]:
        """Return the last lines."""
        return b"".join(self.parts()).decode(errors="replace").splitlines()[-20:]


def _write_stderr(data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]


class Supervisor(ABC):
    """One service and one command."""

    def __init__(self, log: ServiceLog) -> None:
        self._log = log
        self._output: list[bytes] = []
        """What the service has printed, in parts. Only its first line matters."""
        self._readers: list[threading.Thread] = []
        self._end_signals: list[int] = []
        """The signals so far that ask for the end."""
        self.has_lost_service = False
        """Whether the service died while the command ran."""

    @property
    def first_signal(self) -> int:
        """The first signal that asked for the end, or 0."""
        return self._end_signals[0] if self._end_signals else 0

    @abstractmethod
    def _service_exit_code(self, seconds: float) -> int | None:
        """Return the exit code of the service, or `None` if it still runs after this time."""

    @abstractmethod
    def _close_lifeline(self) -> None:
        """Ask the service to stop."""

    @abstractmethod
    def _kill_service(self) -> None:
        """End the service at once."""

    def wait_until_ready(self) -> str:
        """Wait until the service is ready, and return its URL; empty if it ended, or a signal asks for the end."""
        note_at = clock.elapsed() + _SLOW_START
        while self._service_exit_code(POLL_SECONDS) is None and not self._end_signals:
            found = _FIRST_LINE.match(b"".join(self._output))
            problem = readiness_problem(found[1].decode()) if found else ""
            if found and not problem:
                return found[1].decode()
            if problem and clock.elapsed() > note_at:
                print_note(f"waiting for the service to be ready: {problem}")
                note_at = inf
        return ""

    def stop_service(self) -> int:
        """Stop the service, and return its exit code."""
        self._close_lifeline()
        deadline = clock.elapsed() + _STOP_TIMEOUT
        while (code := self._service_exit_code(POLL_SECONDS)) is None:
            if clock.elapsed() > deadline:
                print_note(f"the service did not stop within {_STOP_TIMEOUT:g} s; killing it")
                self._kill_service()
                deadline = inf  # its end may still take a while
        self._join_readers()
        return code

    def _start_readers(self, stdout: int, stderr: int) -> None:
        """Read what the service prints and its log, in threads, until it ends."""

        def read(pipe: int, take: Callable[[bytes], object]) -> None:
            while data := os.read(pipe, 1 << 16):
                take(data)

        for source in ((stdout, self._output.append), (stderr, self._log.write)):
            reader = threading.Thread(target=read, args=source, daemon=True)
            reader.start()
            self._readers.append(reader)

    def _join_readers(self) -> None:
        for each in self._readers:
            each.join(GRACE_SECONDS)

    def _on_lost_service(self, code: int) -> None:
        """Tell the user that the service has died while the command ran."""
        self.has_lost_service = True
        self._join_readers()
        print_note(f"the service died with exit code {code} while the command ran; ending the command")
        if not self._log.is_shown and (last := self._log.tail()):
            print_note("\n  ".join(["the service's log ends with:", *last]))


def readiness_problem(url: str) -> str:
    """Return why the service at this URL is not ready: the body of its response, or the error. Empty if it is ready."""
    try:
        response = connection.get(url, "/_emulator/ready", seconds=_READY_TIMEOUT)
    except connection.Failed as failed:
        return str(failed)
    return "" if response.status == 200 else response.body.decode(errors="replace")
