"""Codes or user ids out of a file or a pipe: a few thousand at a time, each with its line, as often as needed."""

from __future__ import annotations

import csv
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePath
from typing import IO, Any

from extcli.errors import CliError, Misused

_CHUNK = 1 << 18
_LONGEST_LINE = 1 << 20
_BATCH = 5_000
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


class FileFormat(StrEnum):
    """How entries are written down."""

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
    """Stands where an entry should be."""

    rule: str


@dataclass(slots=True)
class Batch:
    """Some entries in order, without the blanks around them."""

    numbers: Sequence[int]
    """Each one's line; of a JSON array its position, from 1."""
    items: list[Any]
    """Text, or `Unreadable`."""


class Entries:
    """One source of entries. What can be read once only is kept in a file that nobody else sees, until the end."""

    def __init__(
        self, argument: str, *, form: FileFormat | None = None, column: str | None = None, take_numbers: bool = False
    ) -> None:
        self.name = "standard input" if argument == "-" else argument
        self._form = form or _form_of(argument)
        self._column = column
        self._take_numbers = take_numbers
        """Whether whole numbers in JSON count as text, as the ids of users do."""
        if self._form is FileFormat.CSV and column is None:
            raise Misused(
                f"{self.name} is CSV, and it is not said which column counts",
                fix="--column code if the first line names it so; --column 1 for a file without such a line",
            )
        self._file = _opened(argument, self.name)
        self._state = self._now()

    def __iter__(self) -> Iterator[Batch]:
        """From the beginning. Raises `Misused` for a file that cannot be read on."""
        try:
            self._file.seek(0)
            compressed = self._file.read(len(_GZIP)) == _GZIP
            self._file.seek(0)
            stream: IO[bytes] = gzip.GzipFile(fileobj=self._file) if compressed else self._file  # type: ignore[assignment]
            yield from self._batches(stream)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise Misused(f"{self.name} is damaged", why="it is compressed by gzip, and cannot be unpacked") from None
        except OSError as error:
            raise Misused(f"{self.name} cannot be read", why=error.strerror or "") from None

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

    def _batches(self, stream: IO[bytes]) -> Iterator[Batch]:
        if self._form is FileFormat.JSON:
            return self._json(stream)
        blocks = _blocks(stream, self.name)
        if self._form is FileFormat.TEXT:
            return _filled(blocks)
        if self._form is FileFormat.CSV:
            return self._csv(chain.from_iterable(lines for _, lines in blocks))
        return self._json_lines(blocks)

    def _csv(self, lines: Iterator[str]) -> Iterator[Batch]:
        first = next(lines, "")
        delimiter = max(",;\t", key=first.count)
        reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
        try:
            at = self._column_of(reader)
            numbers, items = list[int](), list[Any]()
            before = reader.line_num
            for row in reader:
                number, height = before + 1, reader.line_num - before
                before = reader.line_num
                if not row:
                    continue
                numbers.append(number)
                items.append(_cell(row, at) if height == 1 else Unreadable("has a quote that goes over several lines"))
                if len(items) >= _BATCH:
                    yield Batch(numbers, items)
                    numbers, items = [], []
            yield Batch(numbers, items)
        except csv.Error:
            why = f"line {reader.line_num} or one before it has a quote where none may be, or one that is not closed"
            raise Misused(f"{self.name} is not CSV", why=why) from None

    def _column_of(self, reader: Iterator[list[str]]) -> int:
        """Where the column is. One that is named takes the heading off the rows."""
        column = self._column or ""
        if column.isdecimal():
            if int(column) < 1:
                raise Misused("--column counts from 1")
            return int(column) - 1
        headings = [heading.strip().casefold() for heading in next(reader, [])]
        if headings.count(column.casefold()) != 1:
            # Without a heading the first line is an entry, so it is not quoted.
            raise Misused(
                f"the first line of {self.name} does not name one column {column!r}",
                fix="for a file without such a line give the column's number, --column 1",
            )
        return headings.index(column.casefold())

    def _json(self, stream: IO[bytes]) -> Iterator[Batch]:
        import ijson  # type: ignore[import-untyped]

        depth, position, items = 0, 0, list[Any]()
        try:
            for event, value in ijson.basic_parse(stream):
                if event == "string" and depth == 1:
                    items.append(value.strip())
                elif event in ("end_array", "end_map"):
                    depth -= 1
                elif event == "start_array" and depth == 0:
                    depth = 1
                elif depth == 0:
                    raise Misused(f"{self.name} is no JSON array of strings")
                elif event in ("start_array", "start_map"):
                    depth += 1
                    if depth == 2:
                        items.append(self._text_of(None))
                elif depth == 1:
                    items.append(self._text_of(value))
                if len(items) >= _BATCH:
                    yield Batch(range(position + 1, position + 1 + len(items)), items)
                    position, items = position + len(items), []
        except (ijson.JSONError, UnicodeDecodeError):
            # Their own words quote what stands around the place.
            raise Misused(f"{self.name} is not JSON", why=f"after item {position + len(items)}") from None
        yield Batch(range(position + 1, position + 1 + len(items)), items)

    def _json_lines(self, blocks: Iterable[tuple[int, list[str]]]) -> Iterator[Batch]:
        import json

        for batch in _filled(blocks):
            found: list[Any] = []
            for line in batch.items:
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError):
                    found.append(Unreadable("is not JSON"))
                    continue
                if isinstance(value, dict) and self._column is not None:
                    value = value.get(self._column)
                found.append(self._text_of(value))
            yield Batch(batch.numbers, found)

    def _text_of(self, value: object) -> str | Unreadable:
        if isinstance(value, str):
            return value.strip()
        if self._take_numbers and isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return Unreadable("is not a string")


def _cell(row: list[str], at: int) -> str | Unreadable:
    return row[at].strip() if at < len(row) else Unreadable(f"has no column {at + 1}")


def _filled(blocks: Iterable[tuple[int, list[str]]]) -> Iterator[Batch]:
    """The lines that are not blank."""
    for number, lines in blocks:
        items = list(map(str.strip, lines))
        if "" not in items:
            yield Batch(range(number, number + len(items)), items)
            continue
        numbered = [(at, item) for at, item in enumerate(items, number) if item]
        yield Batch([at for at, _ in numbered], [item for _, item in numbered])


def _blocks(stream: IO[bytes], name: str) -> Iterator[tuple[int, list[str]]]:
    """Lines as they come, with the number of the first; bytes that are not UTF-8 become what cannot be printed."""
    rest, number = b"", 1
    while chunk := stream.read(_CHUNK):
        if number == 1 and not rest:
            chunk = chunk.removeprefix(_BOM)
        whole, end, rest = (rest + chunk).rpartition(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise Misused(f"{name} has a line of over 1 MiB", fix="one entry on each line is expected")
        if end:
            lines = whole.decode(errors="surrogateescape").split("\n")
            yield number, lines
            number += len(lines)
    if rest:
        yield number, [rest.decode(errors="surrogateescape")]


def _form_of(argument: str) -> FileFormat:
    """By the name, without the one that says it is compressed."""
    path = PurePath(argument)
    suffix = PurePath(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    return _BY_SUFFIX.get(suffix.lower(), FileFormat.TEXT)


def _opened(argument: str, name: str) -> IO[bytes]:
    """A file that can be read again."""
    if argument == "-":
        if sys.__stdin__ is None:
            raise Misused("standard input is closed")
        return _kept(sys.stdin.buffer, name)
    try:
        file = open(argument, "rb")  # noqa: SIM115  (closed by `Entries.close`)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        with file:
            return _kept(file, name)
    except OSError as error:
        raise Misused(f"{name} cannot be read", why=error.strerror or "") from None


def _kept(stream: IO[bytes], name: str) -> IO[bytes]:
    """What comes from a pipe, in a file without a name, readable for this user alone."""
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    try:
        file = TemporaryFile()  # noqa: SIM115  (closed by `Entries.close`)
        copyfileobj(stream, file, _CHUNK)
        file.flush()
    except OSError as error:
        raise CliError(
            f"{name} cannot be kept for as long as it is needed",
            why=error.strerror or "",
            fix="it is read twice; set TMPDIR to a place with room, or give a file",
        ) from None
    return file
