"""Locks of open files. The system releases one when its file is closed, and so when its process ends.

`service_lock` keeps a second service off a file: each has a clock and caches of its own. `temporary_file` is a database
that ends with its process, among the system's temporary files: a file without a lock was left by a killed process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from stat import S_ISREG

from emulator.core.errors import EngineError


def try_lock(descriptor: int) -> bool:
    """Lock an open file; return False if another process has locked it. Raises `OSError` where locks are not supported.

    On Windows, no other process can read the first byte while the file is locked.
    """
    if sys.platform == "win32":
        import filelock

        return filelock.lock_descriptor(descriptor, blocking=False)
    else:  # as `filelock` does, without the time to import it
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_SQLITE_ENDINGS = ("-wal", "-shm", "-journal")


def check_links(path: str, *others: str) -> None:
    """Raise `EngineError` if a file that is written next to a database is a link: its target would be overwritten."""
    for file in (*(f"{os.path.realpath(path)}{end}" for end in _SQLITE_ENDINGS), *others):
        with suppress(FileNotFoundError, NotADirectoryError):
            found = os.lstat(file)
            if not S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise EngineError(f"cannot open {path}: {file} is a link, or not a regular file; remove it")


_PROCESS_ID_AT = 1 if os.name == "nt" else 0
"""Where a lock file names its process. On Windows no other process can read the first byte."""


@contextmanager
def service_lock(path: str) -> Iterator[None]:
    """Hold `<path>-lock`, which names this process. Raises `EngineError` if another process holds it.

    The system releases the lock when the process ends, however it ends. Backups and other readers may use the file.
    Where a lock cannot be created, SQLite reports the reason.
    """
    name = f"{os.path.realpath(path)}-lock"
    check_links(path, name)
    try:
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        is_free = True
        with suppress(OSError):  # the file system has no locks
            is_free = try_lock(file)
        if not is_free:
            os.lseek(file, _PROCESS_ID_AT, os.SEEK_SET)
            holder = os.read(file, 20).decode("ascii", "replace").strip()
            message = f"in use by another extcli serve, process {holder or 'unknown'}; stop it first"
            raise EngineError(f"cannot open {path}: {message}")
        with suppress(OSError):  # a full disk
            os.ftruncate(file, 0)
            os.lseek(file, _PROCESS_ID_AT, os.SEEK_SET)
            os.write(file, b"%d\n" % os.getpid())
        yield
    finally:
        os.close(file)


_FILE_PREFIX = "extcli-memory-"


@contextmanager
def temporary_file() -> Iterator[str]:
    """Provide the path of a new database, and delete it at the end.

    The file of a killed process is deleted by the next process that needs one.
    """
    _remove_abandoned()
    path = f"{tempfile.gettempdir()}/{_FILE_PREFIX}{os.getpid()}-{token_hex(8)}.db"
    with service_lock(path):  # before there is a file, so that no other process takes it for an abandoned one
        try:
            yield path
        finally:
            _remove_database(path)
    _unlink(f"{path}-lock")  # Windows deletes no open file


@cache
def _remove_abandoned() -> None:
    """Delete the files of killed processes, once for each process."""
    for path in Path(tempfile.gettempdir()).glob(f"{_FILE_PREFIX}*.db"):
        with suppress(OSError):
            with open(f"{path}-lock", "r+b") as file:
                if not try_lock(file.fileno()):
                    continue
                _remove_database(str(path))
            _unlink(f"{path}-lock")


def _remove_database(path: str) -> None:
    """Delete a database; the file that `_remove_abandoned` looks for is the last."""
    for end in ("-wal", "-shm", ""):
        _unlink(f"{path}{end}")


def _unlink(file: str) -> None:
    with suppress(OSError):
        os.unlink(file)
