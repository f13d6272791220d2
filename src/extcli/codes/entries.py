"""Reads codes and user ids from files: their formats, and their entries with the line of each."""

from __future__ import annotations

import codecs
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePath
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from emulator.contract import user_files
from extcli import bounded_json
from extcli.errors import UsageError, file_errors
from extcli.reading import NumberedLines, csv_rows, is_heading, source_name, stream_items

_CHUNK = 1 << 18
_MAX_LINE = 1 << 20
_GZIP = b"\x1f\x8b"


class FileFormat(StrEnum):
    """The format of a file of entries."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"


_FORMAT_BY_SUFFIX = {f".{each}": each for each in FileFormat} | {".tsv": FileFormat.CSV, ".ndjson": FileFormat.JSONL}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Replaces an entry that is not text."""

    problem: str


NumberedEntries = Iterator[tuple[int, str | Unreadable]]
"""Entries without surrounding whitespace, each with its line, or its position in a JSON array; both count from 1."""

Stream = BinaryIO | gzip.GzipFile


class Entries:
    """The entries of one file or pipe, which can be read several times."""

    def __init__(self, argument: str, *, form: FileFormat | None = None, column: str | None = None) -> None:
        """Raises `UsageError`."""
        self.name = source_name(argument)
        self._form = form or _format_from_name(argument)
        self._column = column
        with file_errors(f"read {self.name}"):
            self._file = _open_seekable(argument)

    def __iter__(self) -> NumberedEntries:
        """Read from the start. Raises `UsageError` when the file cannot be read."""
        try:
            self._file.seek(0)
            is_compressed = self._file.read(len(_GZIP)) == _GZIP
            self._file.seek(0)
            yield from self._read_entries(gzip.GzipFile(fileobj=self._file) if is_compressed else self._file)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise UsageError(f"{self.name} is corrupt", why="gzip cannot decompress it") from None
        except OSError as error:
            raise UsageError(f"cannot read {self.name}", why=error.strerror or "") from None

    def place(self, number: int) -> str:
        """Return the name of an entry for messages: `hats.txt:3`, or `hats.json, item 3`."""
        return f"{self.name}, item {number}" if self._form is FileFormat.JSON else f"{self.name}:{number}"

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_entries(self, stream: Stream) -> NumberedEntries:
        if self._form is FileFormat.JSON:
            return self._array_entries(stream)
        lines = _decoded_lines(stream, self.name)
        if self._form is FileFormat.CSV:
            return _column_entries(lines, self.name, self._column)
        texts = _text_entries(lines, self.name)
        return ((number, self._from_json(text)) for number, text in texts) if self._form is FileFormat.JSONL else texts

    def _array_entries(self, stream: Stream) -> NumberedEntries:
        """Yield the elements of a JSON array."""
        start = stream.read(_CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
        if start and not start.startswith(b"["):
            fix = 'write the codes of one set as ["A-1", "A-2"], and give each set its own file: --set NAME=FILE'
            raise UsageError(f"{self.name} is not a JSON array of strings", fix=fix)
        number = 0
        try:
            for value in stream_items(chain([start], iter(lambda: stream.read(_CHUNK), b"")), "item", self.name):
                number += 1
                yield number, self._entry_of_value(value)
        except ValueError:  # the parser's own message quotes the entries around the error
            raise UsageError(f"{self.name} is not JSON", why=f"after item {number}") from None

    def _from_json(self, line: str) -> str | Unreadable:
        try:
            return self._entry_of_value(bounded_json.decoded(line))
        except ValueError:
            return Unreadable("is not JSON")

    def _entry_of_value(self, value: object) -> str | Unreadable:
        """Return a JSON value as an entry: a text, or a whole number, such as the id of a user."""
        if isinstance(value, dict) and self._column is not None:
            value = value.get(self._column)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return value.strip() if isinstance(value, str) else Unreadable("is not a string")


def _format_from_name(path: str) -> FileFormat:
    """Return the format that the file name suggests, ignoring `.gz`."""
    name = PurePath(path.lower().removesuffix(".gz"))
    return _FORMAT_BY_SUFFIX.get(name.suffix, FileFormat.TEXT)


def _open_seekable(argument: str) -> BinaryIO:
    """Open a file; for a pipe, return a copy in a temporary file that only this user can read. Raises `OSError`."""
    is_pipe = argument == "-"
    if is_pipe and sys.__stdin__ is None:
        raise UsageError("standard input is closed")
    source = sys.stdin.buffer if is_pipe else user_files.opened(argument, pipes=True)
    if not is_pipe and stat.S_ISREG(os.fstat(source.fileno()).st_mode):
        return source
    copy = cast("BinaryIO", TemporaryFile())  # noqa: SIM115  (closed by `Entries.close`)
    copyfileobj(source, copy, _CHUNK)
    copy.seek(0)
    return copy


def _decoded_lines(stream: Stream, name: str) -> NumberedLines:
    """Yield lines. Invalid UTF-8 becomes surrogates, which are unprintable."""
    number, mark = 0, codecs.BOM_UTF8
    while line := stream.readline(_MAX_LINE).removeprefix(mark):
        number, mark = number + 1, b""
        if len(line) == _MAX_LINE:
            raise UsageError(f"{name} has a line longer than 1 MiB", fix="put one entry on each line")
        yield number, line.removesuffix(b"\n").decode(errors="surrogateescape")


def _text_entries(lines: NumberedLines, name: str) -> NumberedLines:
    """Yield one entry per line, skipping blank lines. Raises `UsageError` if the first may be a heading."""
    is_first = True
    for number, line in lines:
        if not (text := line.strip()):
            continue
        if is_first and is_heading(text):
            fix = "delete the line, or read it as a heading with --format csv"
            raise UsageError(f"the first line of {name} may be a heading: {text}", fix=fix)
        is_first = False
        yield number, text


def _column_entries(lines: NumberedLines, name: str, column: str | None) -> NumberedEntries:
    """Yield the cells of one column of CSV, named by its heading or by its number from 1.

    A single column needs no name if its heading is a known one.
    """
    at = -1
    for number, row in csv_rows(lines):
        if row is None:
            yield number, Unreadable("is not CSV, for example because a quote is not closed")
            continue
        if at < 0:
            at, is_entry = _column_position(column, row, name)
            if not is_entry:
                continue
        if column is None and len(row) > 1:
            yield number, Unreadable(f"has {len(row)} columns; choose one with --column")
        else:
            yield number, row[at].strip() if at < len(row) else Unreadable(f"has no column {at + 1}")


def _column_position(column: str | None, first: list[str], name: str) -> tuple[int, bool]:
    """Return the index of the column, and whether the first row is an entry, not headings.

    To guess wrong would lose a code, or hand out a heading. No message quotes what may be an entry.
    """
    headings = [cell.strip().casefold() for cell in first]
    if column is None:
        if not any(headings) or (len(first) == 1 and is_heading(first[0])):
            return 0, False
        why = f"it has {len(first)} columns" if len(first) > 1 else "it has no heading such as `code`"
        fix = "use --column code if the first line has that heading, or --column 1 if there is no heading"
        raise UsageError(f"{name} needs --column", why=why, fix=fix)
    if not column.isdecimal() or not int(column):
        if headings.count(column.casefold()) != 1:
            fix = "for a file without a heading, give the column's number: --column 1"
            raise UsageError(f"the first line of {name} must have exactly one column named {column!r}", fix=fix)
        return headings.index(column.casefold()), False
    at = int(column) - 1
    if at < len(first) and is_heading(first[at]):
        heading = first[at].strip()
        raise UsageError(
            f"the first line of {name} may be a heading: column {column} is {heading}",
            fix=f"use --column {heading}, or delete the line",
        )
    return at, True
