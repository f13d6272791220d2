"""Writes files atomically, and never makes them readable by more users than before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from tempfile import mkstemp
from typing import BinaryIO

from extcli import clock
from extcli.errors import UsageError

_OWNER_ONLY = 0o600
_MOVE_SECONDS, _MOVE_INTERVAL = 1.0, 0.02


def write_new(path: Path, text: str, *, owned_like: Path) -> None:
    """Create a file with mode 0600. Run by root, it gets the owner of `owned_like`. Raises `FileExistsError`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with _deleted_on_error(path), os.fdopen(descriptor, "wb") as file:
        file.write(text.encode())
        _sync(file, owned_like)


def replace(path: Path, text: str, *, keep_mode: bool = True) -> None:
    """Replace a file's content in one step, or create the file."""
    with replacing(path, keep_mode=keep_mode) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path, *, keep_mode: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one at `path` when the block ends without an error.

    A reader sees the old content or the new, never a mix. The file gets mode 0600; with `keep_mode`, an existing file
    keeps its mode. A pipe or a device, such as `/dev/stdout`, is not replaced but written to.
    """
    if _is_special(path):
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    descriptor, name = mkstemp(prefix=f".{target.name}-", dir=target.parent)  # with mode 0600
    with _deleted_on_error(name):
        with os.fdopen(descriptor, "wb") as file:
            yield file
            _sync(file, target)
        if keep_mode and target.exists():
            os.chmod(name, target.stat().st_mode & 0o777)
        _move(name, target)


def _is_special(path: Path) -> bool:
    """Return whether the path names a pipe, a device or a socket."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (S_ISREG(mode) or S_ISDIR(mode))


def _move(name: str, target: Path) -> None:
    """Rename a file over another. Windows refuses this while a program has the file open, so it is tried repeatedly."""
    deadline = clock.elapsed() + _MOVE_SECONDS
    while True:
        try:
            return os.replace(name, target)
        except PermissionError:
            if os.name != "nt" or clock.elapsed() > deadline:
                raise
            clock.sleep(_MOVE_INTERVAL)


def check_place(path: Path | None, option: str) -> None:
    """Raise `UsageError`, naming the option, if no file can be at this path. For a check before a long run."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise UsageError(f"{option}: cannot write {path}", why="it is a folder, or its folder does not exist")


def cannot_be_written(path: Path, error: OSError) -> UsageError:
    """Return the error for a file that cannot be written."""
    return UsageError(f"cannot write {path}: {error.strerror}")


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` in the block into the `UsageError` for this file."""
    try:
        yield
    except OSError as error:
        raise cannot_be_written(path, error) from None


def save(path: Path, text: str, *, keep_mode: bool = True) -> None:
    """Replace a file's content as `replace` does. Raises `UsageError`."""
    with write_errors(path):
        replace(path, text, keep_mode=keep_mode)


@contextmanager
def _deleted_on_error(path: str | Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _sync(file: BinaryIO, owned_like: Path) -> None:
    """Flush the file to the disk.

    If root writes, keep the file's owner, so that the service's user can still read it.
    """
    file.flush()
    os.fsync(file.fileno())
    if sys.platform != "win32" and os.geteuid() == 0 and owned_like.exists():
        stat = owned_like.stat()
        os.fchown(file.fileno(), stat.st_uid, stat.st_gid)
