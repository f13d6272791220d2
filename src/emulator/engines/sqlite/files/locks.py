"""Locks of open files. The system releases one when its file is closed, and so when its process ends."""

from __future__ import annotations

import sys


def lock(descriptor: int) -> bool:
    """Lock an open file, and return whether no other process has. Raises `OSError` where there are no locks.

    On Windows, no other process can read the first byte then.
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
