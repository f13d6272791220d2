"""Copies a database that is in use, and puts the copy in place in one step."""

from __future__ import annotations

import errno
import glob
import math
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp

from emulator.engines.sqlite.files.locks import lock
from emulator.errors import EngineError

STEP = 256
"""Pages that are copied between two waits for the processor: a quarter of a MiB."""
LOGS = ("-wal", "-journal")
"""The endings of the names of the files that a database has next to it until it is closed.

They belong to its content, unlike `-shm`, which is only an index of `-wal`.
"""
_PART = ".part"
"""How the name of an unfinished copy ends."""
_LOCK = "-lock"
"""What follows in the name of the file that is locked while a process writes the copy."""
_RANDOM = "?" * 8
"""The characters of `mkstemp`."""


class DamagedCopy(Exception):
    """The source is corrupt, so its copy is too."""


def check_regular(path: str | Path) -> None:
    """Raise `EngineError` for a directory, a device or a pipe. A file that does not exist is allowed."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise EngineError(f"{path} is not a regular file; give the name of a file")


def check_exists(path: str) -> None:
    """Raise `EngineError` unless there is a regular file."""
    check_regular(path)
    if not os.path.exists(path):
        raise EngineError(f"cannot open {path}: there is no such file")


def open_read_only(path: str) -> sqlite3.Connection:
    """Open a database without changing it, even while a service uses it. Raises `sqlite3.Error`."""
    file = os.path.abspath(path)
    may_create = os.access(file, os.W_OK) and os.access(os.path.dirname(file), os.W_OK)
    # A connection that may not write leaves an empty `-wal` and `-shm` behind, one that may removes them. But it would
    # also apply a log that a crash has left.
    mode = "rw" if may_create and not os.path.exists(f"{file}-wal") else "ro"
    if mode == "ro" and not os.path.exists(f"{file}-wal") and not os.access(os.path.dirname(file), os.W_OK):
        mode = "ro&immutable=1"  # the index of the log cannot be created, and there is no log
    connection = sqlite3.connect(f"{Path(file).as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=5)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def copied(source: str, beside: Path, *, checked: bool = True) -> Iterator[Path]:
    """Copy a database to a new file in the same directory as `beside`, on the disk; yield its path.

    The copy has all data that was committed when this began, and is one file without a log. Writers are not blocked.
    The file is deleted at the end of the block unless it was moved. Raises `sqlite3.Error`, or `OSError` if the copy
    cannot be written; if `checked` and corrupt, `DamagedCopy`.
    """
    with _part(beside) as name:
        _write_copy(source, name, checked=checked)
        yield Path(name)


@contextmanager
def _part(beside: Path) -> Iterator[str]:
    """Create an empty file, and lock another that shows that this process is using it. Both are deleted at the end."""
    # A lock of its own: on a network disk, a lock on the file itself would keep SQLite off it. It comes first and goes
    # last, so that no kill leaves a copy without it.
    descriptor, guard = mkstemp(prefix=f".{beside.name}-", suffix=f"{_PART}{_LOCK}", dir=beside.parent)
    name = guard.removesuffix(_LOCK)
    try:
        if not _try_lock(descriptor) and os.name != "nt":
            os.unlink(guard)  # it would show nothing
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield name
    finally:
        for each in (f"{name}-journal", f"{name}-wal", f"{name}-shm", name):
            with suppress(FileNotFoundError):
                os.unlink(each)
        os.close(descriptor)  # first: Windows deletes no open file
        with suppress(FileNotFoundError):
            os.unlink(guard)


def _try_lock(descriptor: int) -> bool:
    """Lock a file until it is closed.

    Return False if another process has locked it, or if the system or disk does not support locks.
    """
    try:
        return lock(descriptor)
    except OSError:
        return False


def _write_copy(source: str, name: str, *, checked: bool) -> None:
    try:
        with closing(open_read_only(source)) as reading, closing(sqlite3.connect(name, isolation_level=None)) as copy:
            reading.execute("BEGIN")  # one snapshot: otherwise each write of the service would start the copy again
            reading.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            copy.execute("PRAGMA synchronous = OFF")  # `sync` below
            reading.backup(copy, pages=STEP, sleep=0)
            copy.execute("PRAGMA journal_mode = DELETE")
            found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0] if checked else "ok"
        if found != "ok":
            raise DamagedCopy(found)
        sync(name)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:  # the disk of the copy: nothing else is written
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise


def remove_parts(beside: Path, *, before: float = math.inf) -> None:
    """Remove the copies, and their journals, that killed calls of `copied` left in the directory of `beside`.

    A copy's lock shows that its process is alive. Where there are no locks, only copies for `beside` are removed, and
    none that was written to since `before`, a Unix time.
    """
    folder = beside.parent
    for path in folder.glob(f".*-{_RANDOM}{_PART}{_LOCK}"):
        with suppress(OSError):
            with open(path, "rb+") as guard:
                if not _try_lock(guard.fileno()):
                    continue
                for each in sorted(folder.glob(f"{glob.escape(path.name.removesuffix(_LOCK))}*"), reverse=True):
                    if each != path:
                        each.unlink()
            path.unlink()
    for part in folder.glob(f".{glob.escape(beside.name)}-{_RANDOM}{_PART}"):
        for each in folder.glob(f"{glob.escape(part.name)}*"):
            with suppress(OSError):
                if each.stat().st_mtime < before and not os.path.exists(f"{part}{_LOCK}"):
                    each.unlink()


def move_into_place(copy: Path, target: Path, *, replace: bool) -> None:
    """Move a file to `target`, in one step. Raises `FileExistsError` unless it may replace an existing file."""
    if replace:
        os.replace(copy, target)
    else:
        link(copy, target)
        os.unlink(copy)
    sync(target.parent)


def link(source: Path, target: Path) -> None:
    """Give a file a second name. Raises `FileExistsError`. Where the disk has no links, copies the file instead."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        with (
            open(source, "rb") as reading,
            open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as to,
        ):
            try:
                shutil.copyfileobj(reading, to)
                to.flush()
                os.fsync(to.fileno())
            except BaseException:
                os.unlink(target)
                raise


def sync(path: str | Path) -> None:
    """Have the disk write a file, or the names in a directory. Windows does this by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_name(path: Path) -> Path:
    """Return this path, or with `-2`, `-3` and so on the first that does not exist."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def timestamp(now: int) -> str:
    """Return an instant in Unix ms as it stands in the names of files: `20261122T222306Z`, in UTC."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(now / 1_000, UTC).strftime("%Y%m%dT%H%M%SZ")
