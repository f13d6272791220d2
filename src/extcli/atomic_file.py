"""Files that are there whole or not at all, and readable for no more people than before."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from extcli.errors import UsageError

_OWNER_ONLY = 0o600


def write_new(path: Path, text: str, *, owned_like: Path) -> None:
    """Write a file for its owner alone: who owns the other file, or us. Raises `FileExistsError` if it is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    try:
        _fill(descriptor, text, owned_like)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def replace(path: Path, text: str) -> None:
    """Put a text in the place of a file's, or make the file; a reader finds the old one or the new one."""
    target = path.resolve()
    descriptor, name = mkstemp(prefix=f".{target.name}-", dir=target.parent)  # with mode 0600
    try:
        _fill(descriptor, text, target)
        if target.exists():
            os.chmod(name, target.stat().st_mode & 0o777)
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def cannot_be_written(path: Path, error: OSError) -> UsageError:
    """The complaint about it."""
    return UsageError(f"{path}: cannot be written: {error.strerror}")


def _fill(descriptor: int, text: str, owned_like: Path) -> None:
    """Root edits the files of the service's user, which has to read them afterwards."""
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "fchown") and os.geteuid() == 0 and owned_like.exists():
            stat = owned_like.stat()
            os.fchown(file.fileno(), stat.st_uid, stat.st_gid)
