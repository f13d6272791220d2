"""Opens connections, and explains SQLite's errors."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

from emulator.core.errors import EngineError
from emulator.storage.sqlite.tables import UnusableDatabase, create_tables

Result = TypeVar("Result")
# Between attempts while another program is writing, for about 5 s.
RETRY_PAUSES = (0.0, 0.0, 0.0, 0.001, 0.002, 0.005, 0.01, *(0.02 for _ in range(250)))

MIN_FREE_SPACE = 1 << 20
"""Bytes that must be free. The votes of a crowd that share a commit may need some hundred KiB."""

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions that opening a file may raise. SQLite's message about a corrupt schema may contain bytes that are not
UTF-8."""


def check_writable(path: str) -> None:
    """Raise `EngineError` if a file, its log or its directory is not writable."""
    file = os.path.abspath(path)
    for each in (file, f"{file}-wal", os.path.dirname(file)):
        if os.path.exists(each) and not os.access(each, os.W_OK):
            raise EngineError(f"cannot open {path}: {each} is not writable")


async def connect(path: str, *, synchronous: str = "NORMAL") -> sqlite3.Connection:
    """Open the database at `path`, and create missing tables. Raises `EngineError`.

    Threads may use the connection one after the other.
    """
    for pause in RETRY_PAUSES:
        with file_errors(f"cannot open {path}", path):
            try:
                return _connect_once(path, synchronous)
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise
        await asyncio.sleep(pause)
    raise EngineError(f"cannot open {path}: locked by another process")


async def run_in_thread(work: Callable[[], Result], interrupt: Callable[[], None] = lambda: None) -> Result:
    """Run `work` in a thread. If this is cancelled, call `interrupt` and wait for the thread before that takes effect.

    So a connection that the thread uses can be closed afterwards.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        interrupt()
        with suppress(sqlite3.Error, EngineError):
            await running
        raise


def _connect_once(path: str, synchronous: str) -> sqlite3.Connection:
    file = os.path.abspath(path)  # SQLite gives some relative names a special meaning
    if not os.path.isdir(os.path.dirname(file)):
        raise EngineError(f"cannot open {path}: there is no directory {os.path.dirname(file)}")
    # Only its owner can open a new file, and its `-wal` and `-shm`, to which SQLite gives its mode. An existing file is
    # not opened: closing it would release the locks of this process's other connections to it.
    with suppress(OSError):  # the file exists, or SQLite explains the error
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(file, isolation_level=None, timeout=0, cached_statements=512, check_same_thread=False)
    try:
        create_tables(connection, synchronous)
        connection.execute("SELECT next FROM numbers").fetchone()  # opens the log
    except BaseException:
        connection.close()
        raise
    return connection


def file_identities(path: str) -> dict[str, os.stat_result]:
    """Return what identifies an open database file and its log, which is next to the target of a link.

    A system gives no other file the same device and inode while this one is open.
    """
    files = (os.path.abspath(path), f"{os.path.realpath(path)}-wal")
    return {file: os.stat(file) for file in files if os.path.exists(file)}


def find_lost_file(opened: Mapping[str, os.stat_result]) -> str:
    """Return which of the open files was deleted or replaced; empty if all are in place."""
    for file, identity in opened.items():
        try:
            found = os.stat(file)
        except (FileNotFoundError, NotADirectoryError):
            return f"{file} was deleted or moved while the service was using it"
        except OSError:  # the folder may not be read now; the open file still can
            continue
        if not os.path.samestat(found, identity):
            return f"{file} was replaced by another file while the service was using it"
    return ""


def permission_warnings(path: str) -> list[str]:
    """Return a warning for each file of an open database that every user can open: it contains the signing key."""
    if sys.platform == "win32":
        return []
    found = []
    for file in (path, f"{path}-wal"):
        # A `-wal` comes with the first write.
        if os.path.exists(file) and os.stat(file).st_mode & (stat.S_IROTH | stat.S_IWOTH):
            found.append(file)
    problem = "holds the key that signs tokens, but any user of this machine can open it; run chmod 600"
    return [f"{file}: {problem}" for file in found]


def check_space(path: str) -> None:
    """Raise `EngineError` if the disk has too little space for the next commits, even if a small one would succeed."""
    try:
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
    except OSError as error:
        raise EngineError(f"cannot check the disk of {path}: {error.strerror}") from error
    if free < MIN_FREE_SPACE:
        raise EngineError(f"the disk of {path} is full: {free} bytes are free, {MIN_FREE_SPACE} are needed")
    limit = size_limit()
    for file in (path, f"{path}-wal"):
        size = os.path.getsize(file) if os.path.exists(file) else 0
        if limit is not None and size + MIN_FREE_SPACE > limit:
            raise EngineError(f"{file} has {size} bytes, and this process may write at most {limit} (ulimit -f)")


def size_limit() -> int | None:
    """Return the bytes that this process may write to a file, if they are limited (`ulimit -f`)."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn SQLite's errors into `EngineError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise EngineError(describe_error(error)) from error


@contextmanager
def file_errors(cannot: str, path: str) -> Iterator[None]:
    """Turn errors of this block into `EngineError`s that begin with `cannot`; `path` is the data file."""
    try:
        yield
    except UnusableDatabase as error:
        raise EngineError(f"{cannot}: {error}") from None
    except FAILURES as error:
        raise EngineError(f"{cannot}: {explain_error(error, path)}") from error
    except OSError as error:
        raise EngineError(f"{cannot}: {error.strerror}") from error


def is_busy(error: Exception) -> bool:
    """Whether another connection holds the lock, so that a retry may succeed."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def is_corruption(error: Exception) -> bool:
    """Whether the error means that the database is corrupt; a file that is not a database at all is not."""
    return _primary_code(error) == sqlite3.SQLITE_CORRUPT or _quotes_data(error)


def explain_error(error: Exception, path: str) -> str:
    """Return one line on why the data file at `path` cannot be used, and the remedy if it is corrupt."""
    if not is_corruption(error):
        return describe_error(error)
    found = " ".join(describe_error(error).split())
    return f"it is corrupt ({found}); {restore_hint(path)}"


def describe_error(error: BaseException) -> str:
    """Return the error's message, unless that may quote stored data."""
    if _quotes_data(error):
        return "it contains text that is not UTF-8"
    if not isinstance(error, sqlite3.Error):
        return type(error).__name__
    limit = size_limit()
    if limit is not None and _primary_code(error) in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
        return f"{error}; this process may write at most {limit} bytes to a file (ulimit -f)"
    return str(error)


def restore_hint(path: str) -> str:
    """Return the operator's remedy for a corrupt or lost file."""
    return f"restore a backup: extcli data restore BACKUP --data sqlite://{os.path.abspath(path)}"


def _quotes_data(error: BaseException) -> bool:
    """Whether the error quotes text that is not UTF-8. The engine stores only UTF-8, so that is corruption."""
    if isinstance(error, sqlite3.OperationalError):
        return str(error).startswith("Could not decode to UTF-8")
    return isinstance(error, UnicodeDecodeError)


def _primary_code(error: BaseException) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF  # the primary code, without the extension


class _ClosedConnection:
    """Takes the place of the connection while the database is closed; every use raises an error."""

    def __getattr__(self, name: str) -> NoReturn:
        raise EngineError("the engine is closed")


NO_CONNECTION: Any = _ClosedConnection()
