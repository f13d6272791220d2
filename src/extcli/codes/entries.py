"""The codes or ids of one file or pipe, which can be gone through as often as needed."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import IO

from extcli.codes import formats
from extcli.codes.formats import Batch, FileFormat, Unreadable
from extcli.errors import CliError, UsageError

_GZIP = b"\x1f\x8b"
_COPIED_AT_ONCE = 1 << 18


class Entries:
    """One source of entries. What can be read only once is kept in a file that nobody else sees, until the end."""

    def __init__(
        self, argument: str, *, form: FileFormat | None = None, column: str | None = None, take_numbers: bool = False
    ) -> None:
        self.name = "standard input" if argument == "-" else argument
        self._form = form or formats.form_of(argument)
        self._column = column
        self._take_numbers = take_numbers
        """Whether whole numbers in JSON count as text, as the ids of users do."""
        if self._form is FileFormat.CSV and column is None:
            raise UsageError(
                f"{self.name} is CSV, and it is not said which column counts",
                fix="--column code if the first line names it so; --column 1 for a file without such a line",
            )
        self._file = _opened(argument, self.name)
        self._state = self._now()

    def __iter__(self) -> Iterator[Batch]:
        """From the beginning. Raises `UsageError` for a file that cannot be read on."""
        try:
            self._file.seek(0)
            compressed = self._file.read(len(_GZIP)) == _GZIP
            self._file.seek(0)
            yield from self._batches(gzip.GzipFile(fileobj=self._file) if compressed else self._file)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise UsageError(
                f"{self.name} is damaged", why="it is compressed by gzip, and cannot be unpacked"
            ) from None
        except OSError as error:
            raise UsageError(f"{self.name} cannot be read", why=error.strerror or "") from None

    @property
    def size(self) -> int:
        """In bytes, as stored."""
        return self._state[0]

    @property
    def consumed(self) -> int:
        """How much of `size` has been read this time."""
        return self._file.tell()

    @property
    def changed(self) -> bool:
        """Whether somebody wrote to the file since it was opened."""
        return self._now() != self._state

    def place(self, number: int) -> str:
        """What to call an entry."""
        return f"{self.name}, item {number}" if self._form is FileFormat.JSON else f"{self.name}:{number}"

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _now(self) -> tuple[int, int]:
        state = os.fstat(self._file.fileno())
        return state.st_size, state.st_mtime_ns

    def _batches(self, stream: IO[bytes] | gzip.GzipFile) -> Iterator[Batch]:
        unpacked: IO[bytes] = stream  # type: ignore[assignment]
        if self._form is FileFormat.JSON:
            return formats.json_array(unpacked, self.name, self._text_of)
        if self._form is FileFormat.JSONL:
            return formats.json_lines(unpacked, self.name, self._text_of)
        if self._form is FileFormat.CSV:
            return formats.csv_column(unpacked, self.name, self._column or "")
        return formats.text(unpacked, self.name)

    def _text_of(self, value: object) -> str | Unreadable:
        if isinstance(value, dict) and self._column is not None:
            value = value.get(self._column)
        if isinstance(value, str):
            return value.strip()
        if self._take_numbers and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return Unreadable("is not a string")


def _opened(argument: str, name: str) -> IO[bytes]:
    """A file that can be read again."""
    if argument == "-":
        if sys.__stdin__ is None:
            raise UsageError("standard input is closed")
        return _kept(sys.stdin.buffer, name)
    try:
        file = open(argument, "rb")  # noqa: SIM115  (closed by `Entries.close`)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        with file:
            return _kept(file, name)
    except OSError as error:
        raise UsageError(f"{name} cannot be read", why=error.strerror or "") from None


def _kept(stream: IO[bytes], name: str) -> IO[bytes]:
    """What comes from a pipe, in a file without a name, readable for this user alone."""
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    try:
        file = TemporaryFile()  # noqa: SIM115  (closed by `Entries.close`)
        copyfileobj(stream, file, _COPIED_AT_ONCE)
        file.flush()
    except OSError as error:
        raise CliError(
            f"{name} cannot be kept for as long as it is needed",
            why=error.strerror or "",
            fix="it is read twice; set TMPDIR to a place with room, or give a file",
        ) from None
    return file
