"""Reads codes and user ids from files: their formats, and their entries with the line of each."""

from __future__ import annotations

import csv
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePath
from typing import IO, Any

from emulator.contract import user_files
from extcli import bounded_json
from extcli.errors import CliError, UsageError
from extcli.reading.csv_files import delimiter_of, is_heading
from extcli.reading.streams import parseable

_CHUNK = 1 << 18
_MAX_LINE = 1 << 20
_BATCH = 5_000
_BOM = b"\xef\xbb\xbf"


_AS_CSV = "delete the line, or read it as a heading with --format csv"


class FileFormat(StrEnum):
    """The format of a file of entries."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"


_BY_SUFFIX = {
    ".csv": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSONL,
    ".ndjson": FileFormat.JSONL,
}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Replaces an entry that is not text."""

    fault: str


@dataclass(slots=True)
class Batch:
    """Consecutive entries."""

    numbers: Sequence[int]
    """The line of each entry, or its position in a JSON array; both count from 1."""
    items: list[Any]
    """Text without surrounding whitespace, or `Unreadable`."""


_NESTED: dict[type, Unreadable] = {
    list: Unreadable("is an array, not a string; each set has its own file"),
    dict: Unreadable("is an object, not a string; for objects write JSON lines, and use --column"),
}
"""Stands for an element of a JSON array that is itself an array or an object."""

TextOf = Callable[[object], str | Unreadable]
"""Turns a JSON value into an entry."""


def format_of(path: str) -> FileFormat:
    """Return the format that the file name suggests, ignoring `.gz`."""
    name = PurePath(path)
    suffix = PurePath(name.stem).suffix if name.suffix.lower() == ".gz" else name.suffix
    return _BY_SUFFIX.get(suffix.lower(), FileFormat.TEXT)


def read_text(stream: IO[bytes], name: str) -> Iterator[Batch]:
    """Yield one entry per line, skipping blank lines. Raises `UsageError` if the first may be a heading."""
    may_be_heading = True
    for number, lines in _blocks(stream, name):
        items = list(map(str.strip, lines))
        if may_be_heading and (first := next(filter(None, items), "")):
            may_be_heading = False
            if is_heading(first):
                raise UsageError(f"the first line of {name} may be a heading: {first}", fix=_AS_CSV)
        if "" not in items:
            yield Batch(range(number, number + len(items)), items)
            continue
        numbered = [(at, item) for at, item in enumerate(items, number) if item]
        yield Batch([at for at, _ in numbered], [item for _, item in numbered])


def read_csv(stream: IO[bytes], name: str, column: str | None) -> Iterator[Batch]:
    """Yield the cells of one column, named by its heading or by its number from 1.

    A single column needs no name if its heading is a known one. Blank lines are skipped.
    """
    lines = chain.from_iterable(lines for _, lines in _blocks(stream, name))
    blank, first = 0, ""
    for first in lines:
        if first.strip():
            break
        blank += 1
    else:
        first = ""
    delimiter = delimiter_of(first)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    try:
        cells = next(csv.reader([first], delimiter=delimiter, strict=True), [])
        if column is None:
            at = 0
            _skip_heading(cells, reader, name)
        else:
            at = _position_of(column, cells, reader, name)
        numbers, items = list[int](), list[Any]()
        before = reader.line_num
        for row in reader:
            number, height = blank + before + 1, reader.line_num - before
            before = reader.line_num
            if not row or (len(row) == 1 and height == 1 and row[0].isspace()):
                continue
            numbers.append(number)
            if height > 1:
                items.append(Unreadable("has a quoted cell that spans several lines"))
            elif column is None and len(row) > 1:
                items.append(Unreadable(f"has {len(row)} columns: --column names the one to read"))
            else:
                items.append(row[at].strip() if at < len(row) else Unreadable(f"has no column {at + 1}"))
            if len(items) >= _BATCH:
                yield Batch(numbers, items)
                numbers, items = [], []
        yield Batch(numbers, items)
    except csv.Error as error:
        raise UsageError(f"{name} is not CSV", why=_csv_fault(str(error), blank + reader.line_num)) from None


def _csv_fault(message: str, line: int) -> str:
    """Return what is wrong at a line, from the message of Python's `csv`, which has one error for everything."""
    if "field limit" in message:
        return f"line {line} has a cell longer than {csv.field_size_limit():,} characters"
    if "new-line character" in message:
        return f"line {line} has a carriage return that ends no line"
    return f"a quote at or before line {line} is misplaced or not closed"


def read_json_array(stream: IO[bytes], name: str, text_of: TextOf) -> Iterator[Batch]:
    """Yield the elements of one array."""
    import ijson  # type: ignore[import-untyped]

    pieces = parseable(iter(lambda: stream.read(_CHUNK), b""))
    position, items = 0, list[Any]()
    try:
        first = next((text for piece in pieces if (text := piece.removeprefix(_BOM).lstrip())), b"")
        if first and not first.startswith(b"["):
            raise UsageError(
                f"{name} is not a JSON array of strings",
                why=f"it begins with {'an object' if first.startswith(b'{') else 'a single value'}",
                fix='write the codes of one set as ["A-1", "A-2"], and give each set its own file: --set NAME=FILE',
            )
        for value in ijson.items(ijson.from_iter(chain([first], pieces)), "item"):
            items.append(_NESTED.get(type(value)) or text_of(value))
            if len(items) >= _BATCH:
                yield Batch(range(position + 1, position + 1 + len(items)), items)
                position, items = position + len(items), []
    except (ijson.JSONError, ValueError, ArithmeticError):  # also a number of over 4,300 digits
        # The parser's own message quotes the entries around the error.
        raise UsageError(f"{name} is not JSON", why=f"after item {position + len(items)}") from None
    yield Batch(range(position + 1, position + 1 + len(items)), items)


def read_json_lines(stream: IO[bytes], name: str, text_of: TextOf) -> Iterator[Batch]:
    """Yield one JSON value per line, skipping blank lines."""
    for batch in read_text(stream, name):
        items: list[Any] = []
        for line in batch.items:
            try:
                items.append(text_of(bounded_json.decoded(line)))
            except ValueError:
                items.append(Unreadable("is not JSON"))
        yield Batch(batch.numbers, items)


def _skip_heading(first: list[str], reader: Iterator[list[str]], name: str) -> None:
    """Consume the heading of a file with one column. Raises `UsageError` for several columns or no known heading."""
    fix = "--column code if the first line has that heading; --column 1 if there is no heading"
    if len(first) > 1:
        raise UsageError(f"{name} has {len(first)} columns and needs --column", fix=fix)
    if first and not is_heading(first[0]):
        # An entry or a heading: to guess wrong would lose a code, or hand out a heading. The message does not quote it.
        raise UsageError(f"{name} needs --column: its first line is not a known heading, such as `code`", fix=fix)
    next(reader, None)


def _position_of(column: str, first: list[str], reader: Iterator[list[str]], name: str) -> int:
    """Return the index of the column; a name consumes the heading from `reader`, whose first row is `first`."""
    if column.isdecimal():
        if int(column) < 1:
            raise UsageError("invalid --column 0", fix="columns count from 1")
        if any(map(is_heading, first[int(column) - 1 : int(column)])):
            heading = first[int(column) - 1].strip()
            raise UsageError(
                f"the first line of {name} may be a heading: column {column} is {heading}",
                fix=f"use --column {heading}, or delete the line",
            )
        return int(column) - 1
    headings = [heading.strip().casefold() for heading in next(reader, [])]
    if headings.count(column.casefold()) != 1:
        # The message does not quote the line: without a heading it is an entry.
        raise UsageError(
            f"the first line of {name} does not name exactly one column {column!r}",
            fix="for a file without a heading, give the column's number: --column 1",
        )
    return headings.index(column.casefold())


def _blocks(stream: IO[bytes], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield lines in blocks, with the number of the first. Invalid UTF-8 becomes surrogates, which are unprintable."""
    rest, number = b"", 1
    first = stream.read(_CHUNK).removeprefix(_BOM)
    for chunk in chain([first], iter(lambda: stream.read(_CHUNK), b"")):
        whole, end, rest = (rest + chunk).rpartition(b"\n")
        if len(rest) > _MAX_LINE:
            raise UsageError(f"{name} has a line longer than 1 MiB", fix="put one entry on each line")
        if end:
            lines = whole.decode(errors="surrogateescape").split("\n")
            yield number, lines
            number += len(lines)
    if rest:
        yield number, [rest.decode(errors="surrogateescape")]


_GZIP = b"\x1f\x8b"
_COPY_CHUNK = 1 << 18


class Entries:
    """The entries of one file or pipe.

    A pipe is copied to an anonymous temporary file, so that it can be read again.
    """

    def __init__(
        self, argument: str, *, form: FileFormat | None = None, column: str | None = None, take_numbers: bool = False
    ) -> None:
        """`take_numbers` accepts whole numbers in JSON as text, for user ids. Raises `UsageError`."""
        self.name = "standard input" if argument == "-" else argument
        self._form = form or format_of(argument)
        self._column = column
        self._take_numbers = take_numbers
        self._file = _open_file(argument, self.name)
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
        """The size of the file in bytes, as stored: for a compressed file, the compressed size."""
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
            return read_json_array(unpacked, self.name, self._text_of)
        if self._form is FileFormat.JSONL:
            return read_json_lines(unpacked, self.name, self._text_of)
        if self._form is FileFormat.CSV:
            return read_csv(unpacked, self.name, self._column)
        return read_text(unpacked, self.name)

    def _text_of(self, value: object) -> str | Unreadable:
        if isinstance(value, dict) and self._column is not None:
            value = value.get(self._column)
        if isinstance(value, str):
            return value.strip()
        if self._take_numbers and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return Unreadable("is not a string")


def _open_file(argument: str, name: str) -> IO[bytes]:
    if argument == "-":
        if sys.__stdin__ is None:
            raise UsageError("standard input is closed")
        return _copy_of_pipe(sys.stdin.buffer, name)
    try:
        file = user_files.opened(argument, pipes=True)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        with file:
            return _copy_of_pipe(file, name)
    except OSError as error:
        raise UsageError(f"cannot read {name}", why=error.strerror or "") from None


def _copy_of_pipe(stream: IO[bytes], name: str) -> IO[bytes]:
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
