"""The log of a service that runs for one command."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import BinaryIO

_TAIL = 1 << 14
"""Bytes of the log that its last lines are taken from."""


class Log:
    """Keeps what a service writes to standard error in a file without a name, and shows it unless it is quiet."""

    def __init__(self, directory: str, *, shown: bool) -> None:
        self.is_shown = shown
        path = os.path.join(directory, "service.log")
        self._file = open(path, "w+b", buffering=0)  # noqa: SIM115  (open as long as the process)
        os.unlink(path)

    def write(self, data: bytes) -> None:
        """Add to the log."""
        with suppress(OSError):  # no space, or the reader of standard error has ended
            self._file.write(data)
        if self.is_shown:
            _print(data)

    def show(self) -> None:
        """Print the log to standard error, if that has not happened."""
        if not self.is_shown:
            self._file.seek(0)
            while data := self._file.read(1 << 16):
                _print(data)

    def copy_to(self, target: BinaryIO) -> None:
        """Write the log to a file. Raises `OSError`."""
        self._file.seek(0)
        shutil.copyfileobj(self._file, target)

    def tail(self, count: int) -> list[str]:
        """Return the last lines, at most `count`."""
        end = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, end - _TAIL))
        text = self._file.read().decode(errors="replace")
        self._file.seek(0, os.SEEK_END)
        return text.splitlines()[-count:]


def _print(data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]
