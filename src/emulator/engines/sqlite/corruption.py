"""Stops all use of a database file that is corrupt, or that was deleted or replaced while it was open.

SQLite goes on using a file that is corrupt in part, and may then overwrite intact data. So at the first sign of
corruption every process stops using the file, and a marker file next to it makes the next start check all of it. What a
file held that was deleted or replaced is saved.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import count

from emulator.engines.sqlite.connection import (
    FAILURES,
    corruption_message,
    describe,
    explain,
    is_busy,
    is_corruption,
    remedy,
)
from emulator.errors import EngineError


class FileWatch:
    """Tells whether a database file and its log are still the files that were opened. Data in memory has no files."""

    def __init__(self, path: str | None) -> None:
        self._file = None if path is None else os.path.abspath(path)
        self._opened: dict[str, tuple[int, int]] = {}
        """Device and inode. A system gives no other file the same while this one is open."""
        self._handles: list[int] = []
        self._places: list[tuple[bytes, bytes]] = []
        """Links of the system to the open files, and their targets while the files are in place."""

    def note_files(self) -> None:
        """Remember the files that the database has just opened."""
        if self._file is None:
            return
        self._opened = {file: _identity(file) for file in _files(self._file)}
        # Only Linux has such links. They do not show that a link within the path now leads elsewhere.
        if sys.platform == "linux" and os.path.realpath(self._file) == self._file:
            self._handles = [os.open(file, os.O_PATH | os.O_CLOEXEC) for file in self._opened]
            links = [b"/proc/self/fd/%d" % handle for handle in self._handles]
            self._places = list(zip(links, map(os.fsencode, self._opened), strict=True))

    def close_handles(self) -> None:
        """Close the handles of the files.

        This releases none of SQLite's locks, because the handles can neither read nor write.
        """
        while self._handles:
            os.close(self._handles.pop())
        self._places = []

    def is_in_place(self) -> bool:
        """Return whether the open files are certainly still in place.

        A quick check, five times faster than `lost_file`.
        """
        try:
            for link, place in self._places:
                if os.readlink(link) != place:
                    return False
        except OSError:
            return False
        return bool(self._places)

    def lost_file(self) -> str | None:
        """Return what happened to the database files, if the open files were deleted or replaced; otherwise `None`."""
        for file, opened in self._opened.items():
            try:
                found = _identity(file)
            except (FileNotFoundError, NotADirectoryError):
                return f"{file} was deleted or moved"
            except OSError:  # the folder may not be read now; the open file still can
                continue
            if found != opened:
                return f"{file} was replaced by another file"
        return None


def rescue(connection: sqlite3.Connection, path: str) -> str:
    """Save a connection's data to a new file next to the database, readable by its owner alone; return its name.

    Raises `OSError` and `sqlite3.Error`, and leaves no file then.
    """
    for name in _names(os.path.abspath(path)):
        with suppress(FileExistsError):
            os.close(os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            break
    try:
        with closing(sqlite3.connect(name)) as copy:
            connection.backup(copy)
    except BaseException:
        with suppress(OSError):
            os.remove(name)
        raise
    return name


def _identity(file: str) -> tuple[int, int]:
    found = os.stat(file)
    return found.st_dev, found.st_ino


def _files(file: str) -> Iterator[str]:
    yield file
    if os.path.exists(f"{file}-wal"):
        yield f"{file}-wal"


def _names(file: str) -> Iterator[str]:
    yield f"{file}.rescued"
    for number in count(2):
        yield f"{file}.rescued-{number}"


MAX_CHECKED_SIZE = 1 << 30
"""Bytes of the largest file that is checked after a crash. That takes seconds; a third of one for a million votes."""
_INTERRUPTED = "a restore was interrupted; "
_log = logging.getLogger("emulator.engines")


def marker_path(path: str) -> str:
    return f"{os.path.abspath(path)}-damaged"


def mark_interrupted(path: str, remedy: str) -> None:
    """Refuse the file at every start from now on, with this remedy, until the marker is gone."""
    marker = marker_path(path)
    with open(marker, "w") as file:
        file.write(f"{_INTERRUPTED}{remedy}\n")
        file.flush()
        os.fsync(file.fileno())


class Corruption:
    """Whether one database file is known to be corrupt or lost. Data in memory never is.

    A block of it notes corruption found there, and turns SQLite's errors into `EngineError`.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._message = ""
        self._is_open = False
        self.is_lost = False
        """Whether the files were deleted or replaced while they were open."""
        self._is_rescued = False

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Raise corruption found in this block as an `EngineError`; later findings are logged."""
        try:
            yield
        except EngineError as error:
            if self._message and isinstance(error.__cause__, sqlite3.Error):
                raise EngineError(f"cannot open {self._path}: {explain(error.__cause__, self._path)}") from error
            raise
        self._is_open = True

    def check(self) -> None:
        """Raise `EngineError` if the file is known to be corrupt."""
        if self._message:
            raise EngineError(self._message)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.note_and_raise(error)

    def note_and_raise(self, error: BaseException) -> None:
        """Check an error for corruption; raise `EngineError` in place of an error of SQLite."""
        if isinstance(error, sqlite3.Error):
            self.note(error)
            raise EngineError(self._message or describe(error)) from error
        if isinstance(error, EngineError):
            self.note(error.__cause__)

    def note(self, error: BaseException | None) -> None:
        """Check whether an error means corruption; if so, log it once, mark the file and stop using it."""
        if self._path is None or self._message or not isinstance(error, sqlite3.Error) or not is_corruption(error):
            return
        self._stop_using(describe(error))
        with suppress(OSError), open(marker_path(self._path), "w") as marker:
            marker.write(f"{describe(error)}\n")

    def mark_lost(self, what: str) -> None:
        """Stop using the files because of the event `what`; `rescue_with` saves their data."""
        if not self._message:
            self._message = f"{what} while the service was using it"
            self.is_lost = True

    def rescue_with(self, connection: sqlite3.Connection) -> None:
        """Save the data of open files that were deleted or replaced, and log what to do. Done only once."""
        if self._path is None or not self.is_lost or self._is_rescued:
            return
        self._is_rescued = True
        try:
            saved = rescue(connection, self._path)
        except (OSError, sqlite3.Error) as error:
            _log.critical("%s, and what it held cannot be saved (%s); nothing more is written", self._message, error)
            return
        _log.critical(
            "%s; nothing more is written. All that was acknowledged is in %s. Stop the service, then %s",
            self._message,
            saved,
            remedy(self._path, saved),
        )

    def check_marker(self) -> None:
        """Stop using the file if another process has marked it."""
        if self._path is not None and not self._message and os.path.exists(marker_path(self._path)):
            self._stop_using("found by another process")

    def _stop_using(self, why: str) -> None:
        self._message = f"{self._path} is corrupt ({why})"
        if self._is_open:
            _log.error("%s and no longer used. Stop the service, then %s", self._message, remedy(self._path))


def check_before_opening(path: str) -> None:
    """Raise `EngineError` if a file is not writable or is corrupt.

    Only a marked file, or one with a log left by a crash, is checked, and only if no process has it open.
    """
    file = os.path.abspath(path)
    for each in (file, f"{file}-wal", os.path.dirname(file)):
        if os.path.exists(each) and not os.access(each, os.W_OK):
            raise EngineError(f"cannot open {path}: {each} is not writable")
    marker = marker_path(path)
    is_marked = os.path.exists(marker)
    if not is_marked and not _has_log(file):
        return
    if is_marked and (why := _interrupted_restore(marker)):
        raise EngineError(f"cannot open {path}: {why}")
    try:
        found = _check_file(file, thoroughly=is_marked)
    except FAILURES as error:
        if not is_busy(error):
            raise EngineError(f"cannot open {path}: {explain(error, path)}") from error
        if not is_marked:
            return
        found = "found by the process that has it open"
    if found != "ok":
        raise EngineError(f"cannot open {path}: {corruption_message(found, path)}")
    if is_marked:
        os.remove(marker)


def _interrupted_restore(marker: str) -> str:
    """Return the marker's reason why a restore of the file must be repeated; empty if none was interrupted."""
    with open(marker, errors="replace") as file:
        text = file.readline().strip()
    return text if text.startswith(_INTERRUPTED) else ""


def _has_log(file: str) -> bool:
    try:
        return os.path.getsize(f"{file}-wal") > 0
    except FileNotFoundError:
        return False


def _check_file(file: str, *, thoroughly: bool) -> str:
    connection = sqlite3.connect(file, isolation_level=None, timeout=0)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a finding may quote corrupt text
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # busy if another process has it open
        connection.execute("SELECT count(*) FROM sqlite_schema")
        if not thoroughly and os.path.getsize(file) > MAX_CHECKED_SIZE:
            _log.warning("%s was not closed cleanly and is too large to check at startup", file)
            return "ok"
        (found,) = connection.execute(f"PRAGMA {'integrity_check' if thoroughly else 'quick_check'}(1)").fetchone()
        return str(found)
    finally:
        connection.close()
