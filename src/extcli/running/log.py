"""The log of a service that runs for one command."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


class Log:
    """Keeps what a service writes to standard error in a file without a name, and shows it unless it is quiet."""

    def __init__(self, directory: str, *, shown: bool) -> None:
        self._shown = shown
        path = os.path.join(directory, "service.log")
        self._file = open(path, "w+b", buffering=0)  # noqa: SIM115  (open as long as the process)
        os.unlink(path)

    def write(self, data: bytes) -> None:
        """Add to the log."""
        with suppress(OSError):  # no space, or the reader of standard error has ended
            self._file.write(data)
        if self._shown:
            _print(data)

    def show(self) -> None:
        """Print the log to standard error, if that has not happened."""
        if not self._shown:
            self._file.seek(0)
            while data := self._file.read(1 << 16):
                _print(data)

    def copy_to(self, path: Path) -> None:
        """Write the log to a file. Raises `OSError`."""
        self._file.seek(0)
        with path.open("wb") as target:
            shutil.copyfileobj(self._file, target)


def _print(data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(2, data) :]
