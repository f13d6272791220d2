"""Keeps a second service off a file. Two would each have a clock of their own, and a reset would empty both."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from emulator.errors import EngineError

_HEADER = b"SQLite format 3\x00"


@contextmanager
def service_lock(path: str, namespace: str, advice: str = "stop it first, or use --workers instead") -> Iterator[None]:
    """Hold `<path>-<namespace>-lock`, which names this process. Raises `EngineError` if another process holds it.

    The system releases the lock when the process ends, however it ends. Workers of the process may use the file, as may
    backups and other readers. Where a lock cannot be created, SQLite reports what is wrong with the place.
    """
    if sys.platform == "win32" or not _may_be_database(path):
        yield
        return
    import fcntl

    try:
        lock = os.open(f"{os.path.realpath(path)}-{namespace}-lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode("ascii", "replace").strip()
            message = f"in use by another extcli serve, process {holder or 'unknown'}; {advice}"
            raise EngineError(f"cannot open {path}: {message}") from None
        except OSError:  # the file system has no locks
            pass
        with suppress(OSError):  # a full disk
            os.ftruncate(lock, 0)
            os.write(lock, b"%d\n" % os.getpid())
        yield
    finally:
        os.close(lock)


def _may_be_database(path: str) -> bool:
    """Whether the file is missing, empty or a database: no lock is left beside other files."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_HEADER)) in (b"", _HEADER)
    except FileNotFoundError:
        return True
    except OSError:
        return False
