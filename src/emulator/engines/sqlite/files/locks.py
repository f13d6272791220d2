"""Locks of open files. The system releases one when its file is closed, and so when its process ends.

`service_lock` keeps a second service off a file: two would each have a clock of their own, and a reset would empty
both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from emulator.errors import EngineError


def lock(descriptor: int) -> bool:
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


_HEADER = b"SQLite format 3\x00"
_NAMED_AT = 1 if os.name == "nt" else 0
"""Where a lock file names its process. On Windows no other process can read the first byte."""


@contextmanager
def service_lock(path: str, namespace: str, advice: str = "stop it first, or use --workers instead") -> Iterator[None]:
    """Hold `<path>-<namespace>-lock`, which names this process. Raises `EngineError` if another process holds it.

    The system releases the lock when the process ends, however it ends. Workers of the process may use the file, as may
    backups and other readers. Where a lock cannot be created, SQLite reports the reason.
    """
    if not _may_be_database(path):
        yield
        return
    try:
        file = os.open(f"{os.path.realpath(path)}-{namespace}-lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        is_free = True
        with suppress(OSError):  # the file system has no locks
            is_free = lock(file)
        if not is_free:
            os.lseek(file, _NAMED_AT, os.SEEK_SET)
            holder = os.read(file, 20).decode("ascii", "replace").strip()
            message = f"in use by another extcli serve, process {holder or 'unknown'}; {advice}"
            raise EngineError(f"cannot open {path}: {message}")
        with suppress(OSError):  # a full disk
            os.ftruncate(file, 0)
            os.lseek(file, _NAMED_AT, os.SEEK_SET)
            os.write(file, b"%d\n" % os.getpid())
        yield
    finally:
        os.close(file)


def _may_be_database(path: str) -> bool:
    """Whether the file is missing, empty or a database: other files get no lock file."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_HEADER)) in (b"", _HEADER)
    except FileNotFoundError:
        return True
    except OSError:
        return False
