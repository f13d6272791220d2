"""Writes files atomically, and never makes them readable by more users than before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

from extcli import clock
from extcli.errors import UsageError

_OWNER_ONLY = 0o600
_LOCK_SECONDS, _LOCK_INTERVAL = 30.0, 0.02
_MOVE_SECONDS, _MOVE_INTERVAL = 1.0, 0.02


def create_private(path: Path, text: str, *, owned_like: Path) -> None:
    """Create a file with mode 0600. Run by root, it gets the owner of `owned_like`. Raises `FileExistsError`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with _delete_on_error(path), os.fdopen(descriptor, "wb") as file:
        file.write(text.encode())
        _flush_to_disk(file, owned_like)


@contextmanager
def try_lock(path: Path, seconds: float) -> Iterator[bool]:
    """Try to lock a path for this process, and yield whether that succeeded within so many seconds. Raises `OSError`.

    The lock is a hidden file next to the path, which is deleted at the end.
    """
    import filelock

    held = filelock.FileLock(path.with_name(f".{path.name}.lock"), mode=_OWNER_ONLY)
    try:
        held.acquire(timeout=seconds, poll_interval=_LOCK_INTERVAL)
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):  # Windows deletes no open file
            os.unlink(held.lock_file)  # while it is locked: another process that waits for it opens a new one
        held.release()


@contextmanager
def edit_lock(path: Path) -> Iterator[None]:
    """Let one process at a time change a file, from reading it to replacing it, so that no change is lost.

    Raises `UsageError`.
    """
    target = path.resolve()
    if not target.parent.is_dir():  # the change says so
        yield
        return
    with write_errors(path), try_lock(target, _LOCK_SECONDS) as is_held:
        if not is_held:
            problem = f"{path} has been locked for {_LOCK_SECONDS:g} s"
            raise UsageError(problem, fix="wait until the other extcli process ends, or stop it")
        yield


@contextmanager
def replacement_of(path: Path, *, keep_mode: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one at `path` when the block ends without an error.

    A reader sees the old content or the new, never a mix. The file gets mode 0600; with `keep_mode`, an existing file
    keeps its mode. A pipe or a device, such as `/dev/stdout`, is not replaced but written to.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    descriptor, name = mkstemp(prefix=f".{target.name}-", dir=target.parent)  # with mode 0600
    with _delete_on_error(name):
        with os.fdopen(descriptor, "wb") as file:
            yield file
            _flush_to_disk(file, target)
        if keep_mode and target.exists():
            os.chmod(name, target.stat().st_mode & 0o777)
        _rename_over(name, target)


def _rename_over(name: str, target: Path) -> None:
    """Rename a file over another. Windows refuses this while a program has the file open, so it is tried repeatedly."""
    deadline = clock.elapsed() + _MOVE_SECONDS
    while True:
        try:
            return os.replace(name, target)
        except PermissionError:
            if os.name != "nt" or clock.elapsed() > deadline:
                raise
            clock.sleep(_MOVE_INTERVAL)


def check_writable(path: Path | None, option: str) -> None:
    """Raise `UsageError`, naming the option, if no file can be at this path. For a check before a long run."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise UsageError(f"{option}: cannot write {path}", why="it is a folder, or its parent folder does not exist")


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` in the block into the `UsageError` for this file."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def replace_text(path: Path, text: str, *, keep_mode: bool = True) -> None:
    """Replace a file's content in one step, or create the file. Raises `UsageError`."""
    with write_errors(path), replacement_of(path, keep_mode=keep_mode) as file:
        file.write(text.encode())


@contextmanager
def _delete_on_error(path: str | Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _flush_to_disk(file: BinaryIO, owned_like: Path) -> None:
    """Flush the file to the disk.

    If root writes, keep the file's owner, so that the service's user can still read it.
    """
    file.flush()
    os.fsync(file.fileno())
    if sys.platform != "win32" and os.geteuid() == 0 and owned_like.exists():
        stat = owned_like.stat()
        os.fchown(file.fileno(), stat.st_uid, stat.st_gid)
