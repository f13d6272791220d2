"""Opening a connection, and what SQLite's errors mean."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from emulator.engines.sqlite.schema import NotOurs, prepare
from emulator.errors import EngineError

# Another writer of this process needs no more than a turn of the loop; one of another process up to about 5 s.
PAUSES = (0.0, 0.0, 0.0, 0.001, 0.002, 0.005, 0.01, *(0.02 for _ in range(250)))

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What opening a file may raise: the latter where SQLite complains of a schema and cites what is destroyed in it."""


async def connected(path: str | None, *, check_same_thread: bool = True) -> sqlite3.Connection:
    """A connection to a database that is ours; EngineError names the path when there is none to be had."""
    for pause in PAUSES:
        try:
            return _connected(path, check_same_thread)
        except FAILURES as error:
            if not is_busy(error):
                raise EngineError(f"cannot open {path}: {explained(error, path)}") from error
        await asyncio.sleep(pause)
    raise EngineError(f"cannot open {path}: locked by another process")


def _connected(path: str | None, check_same_thread: bool) -> sqlite3.Connection:
    # As an absolute path, or SQLite would read a meaning into some names.
    file = ":memory:" if path is None else os.path.abspath(path)
    if path is not None and not os.path.isdir(os.path.dirname(file)):
        raise EngineError(f"cannot open {path}: there is no directory {os.path.dirname(file)}")
    connection = sqlite3.connect(
        file, isolation_level=None, timeout=0, cached_statements=512, check_same_thread=check_same_thread
    )
    try:
        prepare(connection)
    except NotOurs as error:
        connection.close()
        raise EngineError(f"cannot open {path}: {error}") from None
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def engine_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise EngineError(said(error)) from error


def is_busy(error: Exception) -> bool:
    """Whether another connection stands in the way, so that trying again may help."""
    return _code(error) == sqlite3.SQLITE_BUSY


def is_sign_of_damage(error: Exception) -> bool:
    """Whether the file does not hold what was written to it."""
    if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return True
    return _cites(error)


def explained(error: Exception, path: str | None) -> str:
    """What an error means for whoever opens the file, in one line. What is no database at all was never ours."""
    is_damaged = is_sign_of_damage(error) and _code(error) != sqlite3.SQLITE_NOTADB
    return damaged(said(error), path) if is_damaged else said(error)


def said(error: BaseException) -> str:
    """What an error says, without the data that it may cite."""
    if _cites(error):
        return "a text in it is not UTF-8"
    return str(error) if isinstance(error, sqlite3.Error) else type(error).__name__


def damaged(found: str, path: str | None) -> str:
    """What is to be said of a damaged file in which this was found."""
    return f"it is damaged ({' '.join(found.split())}); {remedy(path)}"


def remedy(path: str | None) -> str:
    """What to do about damage."""
    rescue = f"sqlite3 {path} .recover | sqlite3 rescued.db"
    return f"put a backup in its place, or rescue what is left, with the shell of sqlite.org: {rescue}"


def _cites(error: BaseException) -> bool:
    """Whether an error shows text that cannot be read. We write no such text."""
    if isinstance(error, sqlite3.OperationalError):
        return str(error).startswith("Could not decode to UTF-8")
    return isinstance(error, UnicodeDecodeError)


def _code(error: Exception) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF  # without what only explains it
