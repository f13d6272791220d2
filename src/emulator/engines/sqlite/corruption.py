"""A damaged file: looked for when the last end was a sudden one, and not used any more once it was met.

SQLite goes on with a file of which a part is destroyed, and what it writes then may land on what was still whole. So
the first sign of damage is the last thing that is done with the file, and a mark beside it tells the next start.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from emulator.engines.sqlite.connection import FAILURES, damaged, explained, is_busy, is_sign_of_damage, remedy, said
from emulator.errors import EngineError

MOST_LOOKED_THROUGH = 1 << 30
"""Bytes of a file that is looked through after a sudden end: some seconds' work, a third of one for a million votes."""
_log = logging.getLogger("emulator.engines")


def mark_of(path: str) -> str:
    """The file that says that damage was met in the file at `path`."""
    return f"{os.path.abspath(path)}-damaged"


class Corruption:
    """What is known of the damage of one file; data in memory has none."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._met = ""
        self._in_use = False

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Let damage that is met in the block be said by the EngineError that leaves it, and later by the log."""
        try:
            yield
        except EngineError as error:
            if self._met and isinstance(error.__cause__, sqlite3.Error):
                raise EngineError(f"cannot open {self._path}: {explained(error.__cause__, self._path)}") from error
            raise
        self._in_use = True

    def check(self) -> None:
        """Raise EngineError if the file is not to be used."""
        if self._met:
            raise EngineError(self._met)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Turn SQLite's errors in the block into EngineError, and note those that are signs of damage."""
        try:
            yield
        except sqlite3.Error as error:
            self.note(error)
            raise EngineError(self._met or said(error)) from error
        except EngineError as error:
            self.note(error.__cause__)
            raise

    def note(self, error: BaseException | None) -> None:
        """If this is a sign of damage, use the file no more, and say so once."""
        if self._path is None or self._met or not isinstance(error, sqlite3.Error) or not is_sign_of_damage(error):
            return
        self._stop_using(said(error))
        with suppress(OSError), open(mark_of(self._path), "w") as mark:
            mark.write(f"{said(error)}\n")

    def look(self) -> None:
        """Note what another process on the same file has met."""
        if self._path is not None and not self._met and os.path.exists(mark_of(self._path)):
            self._stop_using("another process met it")

    def _stop_using(self, why: str) -> None:
        self._met = f"{self._path} is damaged ({why})"
        if self._in_use:
            _log.error("%s and is not used any more. Stop the service, and %s", self._met, remedy(self._path))


def examine(path: str) -> None:
    """Raise EngineError if a file cannot be written, or is damaged as far as can be told before it is used.

    It is looked through where there is a reason to: a mark, or a log that nobody was left to copy into the file. Where
    another process has the file open, that one has done it.
    """
    file = os.path.abspath(path)
    for each in (file, f"{file}-wal", os.path.dirname(file)):
        if os.path.exists(each) and not os.access(each, os.W_OK):
            raise EngineError(f"cannot open {path}: nothing can be written to {each}")
    mark = mark_of(path)
    is_marked = os.path.exists(mark)
    if not is_marked and not _ended_suddenly(file):
        return
    try:
        found = _look_through(file, thoroughly=is_marked)
    except FAILURES as error:
        if not is_busy(error):
            raise EngineError(f"cannot open {path}: {explained(error, path)}") from error
        if not is_marked:
            return
        found = "as the process says that has it open"
    if found != "ok":
        raise EngineError(f"cannot open {path}: {damaged(found, path)}")
    if is_marked:
        os.remove(mark)


def _ended_suddenly(file: str) -> bool:
    try:
        return os.path.getsize(f"{file}-wal") > 0
    except FileNotFoundError:
        return False


def _look_through(file: str, *, thoroughly: bool) -> str:
    connection = sqlite3.connect(file, isolation_level=None, timeout=0)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # what is found may cite destroyed text
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # busy where anybody else has it open
        connection.execute("SELECT count(*) FROM sqlite_schema")
        if not thoroughly and os.path.getsize(file) > MOST_LOOKED_THROUGH:
            _log.warning("%s ended suddenly and is too large to be looked through at a start", file)
            return "ok"
        (found,) = connection.execute(f"PRAGMA {'integrity_check' if thoroughly else 'quick_check'}(1)").fetchone()
        return str(found)
    finally:
        connection.close()
