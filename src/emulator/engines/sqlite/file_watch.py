"""Notices that the files of an open database were deleted or replaced, and saves what the open ones hold."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count


class FileWatch:
    """The database at `path` and its log, as they were when it was opened. Data in memory has none."""

    def __init__(self, path: str | None) -> None:
        self._file = None if path is None else os.path.abspath(path)
        self._opened: dict[str, tuple[int, int]] = {}
        """Device and inode. A system gives no other file the same while this one is open."""
        self._handles: list[int] = []
        self._places: list[tuple[bytes, bytes]] = []
        """Links of the system to the open files, and what they say while the files are in place."""

    def begin(self) -> None:
        """Note the files, which the database has just opened."""
        if self._file is None:
            return
        self._opened = {file: _identity(file) for file in _files(self._file)}
        # Only Linux has such links. They do not show that a link within the path now leads elsewhere.
        if hasattr(os, "O_PATH") and os.path.realpath(self._file) == self._file:
            self._handles = [os.open(file, os.O_PATH | os.O_CLOEXEC) for file in self._opened]
            links = [b"/proc/self/fd/%d" % handle for handle in self._handles]
            self._places = list(zip(links, map(os.fsencode, self._opened), strict=True))

    def end(self) -> None:
        """Let go of the files. SQLite keeps its locks: to close a handle without rights to read or write ends none."""
        while self._handles:
            os.close(self._handles.pop())
        self._places = []

    def is_in_place(self) -> bool:
        """Return whether the files are certainly not lost. Costs a fifth of `loss`, which knows more."""
        try:
            for link, place in self._places:
                if os.readlink(link) != place:
                    return False
        except OSError:
            return False
        return bool(self._places)

    def loss(self) -> str | None:
        """Return what has become of the files, if they are no longer those that are open."""
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
    """Save what a connection reads beside the database, for its owner alone; return the name of the new file.

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
