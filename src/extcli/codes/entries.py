"""The codes or ids in one file or pipe. Iterate as often as needed: the file is read each time, never held."""

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
from extcli.reading import user_files

_GZIP = b"\x1f\x8b"
_COPY_CHUNK = 1 << 18


class Entries:
    """One source of entries. A pipe is copied to an anonymous temporary file, so that it can be read again."""

    def __init__(
        self, argument: str, *, form: FileFormat | None = None, column: str | None = None, take_numbers: bool = False
    ) -> None:
        """`take_numbers` accepts whole numbers in JSON as text, for user ids. Raises `UsageError`."""
        self.name = "standard input" if argument == "-" else argument
        self._form = form or formats.format_of(argument)
        self._column = column
        self._take_numbers = take_numbers
        self._file = _opened(argument, self.name)
        self._state = self._file_state()

    def __iter__(self) -> Iterator[Batch]:
        """Read from the start. Raises `UsageError` when the file cannot be read."""
        try:
            self._file.seek(0)
            compressed = self._file.read(len(_GZIP)) == _GZIP
            self._file.seek(0)
            yield from self._batches(gzip.GzipFile(fileobj=self._file) if compressed else self._file)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise UsageError(f"{self.name} is corrupt", why="gzip cannot decompress it") from None
        except OSError as error:
            raise UsageError(f"cannot read {self.name}", why=error.strerror or "") from None

    @property
    def size(self) -> int:
        """The size of the file in bytes, compressed if it is."""
        return self._state[0]

    @property
    def consumed(self) -> int:
        """How many bytes of `size` the current iteration has read."""
        return self._file.tell()

    @property
    def changed(self) -> bool:
        """Whether the file was written to after it was opened."""
        return self._file_state() != self._state

    def place(self, number: int) -> str:
        """Return the name of an entry for messages: `hats.txt:3`, or `hats.json, item 3`."""
        return f"{self.name}, item {number}" if self._form is FileFormat.JSON else f"{self.name}:{number}"

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _file_state(self) -> tuple[int, int]:
        state = os.fstat(self._file.fileno())
        return state.st_size, state.st_mtime_ns

    def _batches(self, stream: IO[bytes] | gzip.GzipFile) -> Iterator[Batch]:
        unpacked: IO[bytes] = stream  # type: ignore[assignment]
        if self._form is FileFormat.JSON:
            return formats.read_json_array(unpacked, self.name, self._text_of)
        if self._form is FileFormat.JSONL:
            return formats.read_json_lines(unpacked, self.name, self._text_of)
        if self._form is FileFormat.CSV:
            return formats.read_csv(unpacked, self.name, self._column)
        return formats.read_text(unpacked, self.name)

    def _text_of(self, value: object) -> str | Unreadable:
        if isinstance(value, dict) and self._column is not None:
            value = value.get(self._column)
        if isinstance(value, str):
            return value.strip()
        if self._take_numbers and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return Unreadable("is not a string")


def _opened(argument: str, name: str) -> IO[bytes]:
    if argument == "-":
        if sys.__stdin__ is None:
            raise UsageError("standard input is closed")
        return _copied(sys.stdin.buffer, name)
    try:
        file = user_files.opened(argument, pipes=True)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        with file:
            return _copied(file, name)
    except OSError as error:
        raise UsageError(f"cannot read {name}", why=error.strerror or "") from None


def _copied(stream: IO[bytes], name: str) -> IO[bytes]:
    """Copy a pipe to a temporary file that only this user can read."""
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    try:
        file = TemporaryFile()  # noqa: SIM115  (closed by `Entries.close`)
        copyfileobj(stream, file, _COPY_CHUNK)
        file.flush()
    except OSError as error:
        raise CliError(
            f"cannot copy {name} to a temporary file",
            why=error.strerror or "",
            fix="set TMPDIR to a directory with more space, or name a file: the input is read twice",
        ) from None
    return file
