"""A database file that ends with its process, among the system's temporary files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex

from emulator.core.errors import EngineError
from emulator.storage.sqlite.files.locks import lock, service_lock

_PREFIX = "extcli-memory-"


@contextmanager
def temporary_file(content: bytes) -> Iterator[str]:
    """Provide the path of a new file with this content, which only this user can open, and delete it at the end.

    The file of a killed process is deleted by the next process that needs one. Raises `EngineError`.
    """
    _remove_abandoned()
    path = f"{tempfile.gettempdir()}/{_PREFIX}{os.getpid()}-{token_hex(8)}.db"
    with service_lock(path):  # before there is a file, so that no other process takes it for an abandoned one
        try:
            _write(path, content)
            yield path
        finally:
            _remove(path)
    _unlink(f"{path}-lock")  # Windows deletes no open file


def _write(path: str, content: bytes) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise EngineError(f"cannot write a temporary file for data in memory, {path}: {error.strerror}") from error


@cache
def _remove_abandoned() -> None:
    """Delete the files of killed processes, once for each process."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*.db"):
        with suppress(OSError):
            descriptor = os.open(f"{path}-lock", os.O_RDWR)
            try:
                if not lock(descriptor):
                    continue
                _remove(str(path))
            finally:
                os.close(descriptor)
            _unlink(f"{path}-lock")


def _remove(path: str) -> None:
    """Delete a database; the file that `_remove_abandoned` looks for is the last."""
    for end in ("-wal", "-shm", ""):
        _unlink(f"{path}{end}")


def _unlink(file: str) -> None:
    with suppress(OSError):
        os.unlink(file)
