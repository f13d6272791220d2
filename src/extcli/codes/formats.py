"""Parses lists of codes or ids (text, CSV, a JSON array or JSON lines) in batches of a few thousand entries."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePath
from typing import IO, Any

from extcli import bounded_json
from extcli.errors import UsageError
from extcli.reading.streams import parseable

_CHUNK = 1 << 18
_MAX_LINE = 1 << 20
_BATCH = 5_000
_BOM = b"\xef\xbb\xbf"


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
    """Takes the place of an entry that is not text."""

    fault: str


@dataclass(slots=True)
class Batch:
    """Consecutive entries."""

    numbers: Sequence[int]
    """The line of each entry, or its position in a JSON array; both count from 1."""
    items: list[Any]
    """Text without surrounding whitespace, or `Unreadable`."""


_NESTED = {
    "start_array": Unreadable("is an array, not a string; each set has its own file"),
    "start_map": Unreadable("is an object, not a string; for objects write JSON lines, and use --column"),
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
    """Yield one entry per line, skipping blank lines."""
    for number, lines in _blocks(stream, name):
        items = list(map(str.strip, lines))
        if "" not in items:
            yield Batch(range(number, number + len(items)), items)
            continue
        numbered = [(at, item) for at, item in enumerate(items, number) if item]
        yield Batch([at for at, _ in numbered], [item for _, item in numbered])


_HEADINGS = frozenset(("code", "codes", "user", "users", "user_id", "userid", "user id", "identifier", "id"))
"""What is a heading, in small letters, above the only column of a file."""


def read_csv(stream: IO[bytes], name: str, column: str | None) -> Iterator[Batch]:
    """Yield the cells of one column, named by its heading or by its number from 1.

    The only column needs no name if it has a known heading. Blank lines are skipped.
    """
    lines = chain.from_iterable(lines for _, lines in _blocks(stream, name))
    blank, first = 0, ""
    for first in lines:
        if first.strip():
            break
        blank += 1
    else:
        first = ""
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    try:
        if column is None:
            at = 0
            _skip_heading(next(csv.reader([first], delimiter=delimiter, strict=True), []), reader, name)
        else:
            at = _position_of(column, reader, name)
        numbers, items = list[int](), list[Any]()
        before = reader.line_num
        for row in reader:
            number, height = blank + before + 1, reader.line_num - before
            before = reader.line_num
            if not row:
                continue
            numbers.append(number)
            if height > 1:
                items.append(Unreadable("has a quoted cell that spans several lines"))
            elif column is None and len(row) > 1:
                items.append(Unreadable(f"has {len(row)} columns: --column names the one to read"))
            else:
                items.append(_cell(row, at))
            if len(items) >= _BATCH:
                yield Batch(numbers, items)
                numbers, items = [], []
        yield Batch(numbers, items)
    except csv.Error:
        why = f"a quote at or before line {blank + reader.line_num} is misplaced or not closed"
        raise UsageError(f"{name} is not CSV", why=why) from None


def read_json_array(stream: IO[bytes], name: str, text_of: TextOf) -> Iterator[Batch]:
    """Yield the elements of one array."""
    import ijson  # type: ignore[import-untyped]

    depth, position, items = 0, 0, list[Any]()
    try:
        pieces = parseable(iter(lambda: stream.read(_CHUNK), b""))
        for event, value in ijson.basic_parse(ijson.from_iter(pieces)):
            if event == "string" and depth == 1:
                items.append(value.strip())
            elif event in ("end_array", "end_map"):
                depth -= 1
            elif event == "start_array" and depth == 0:
                depth = 1
            elif depth == 0:
                raise UsageError(
                    f"{name} is not a JSON array of strings",
                    why=f"it begins with {'an object' if event == 'start_map' else 'a single value'}",
                    fix='write the codes of one set as ["A-1", "A-2"], and give each set its own file: --set NAME=FILE',
                )
            elif event in ("start_array", "start_map"):
                depth += 1
                if depth == 2:
                    items.append(_NESTED[event])
            elif depth == 1:
                items.append(text_of(value))
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
    if first and first[0].strip().casefold() not in _HEADINGS:
        # An entry or a heading: to guess wrong would lose a code, or hand out a heading. The message does not quote it.
        raise UsageError(f"{name} needs --column: its first line is no known heading, such as `code`", fix=fix)
    next(reader, None)


def _position_of(column: str, reader: Iterator[list[str]], name: str) -> int:
    """Return the index of the column; a name consumes the heading from `reader`."""
    if column.isdecimal():
        if int(column) < 1:
            raise UsageError("invalid --column 0", fix="columns count from 1")
        return int(column) - 1
    headings = [heading.strip().casefold() for heading in next(reader, [])]
    if headings.count(column.casefold()) != 1:
        # The message does not quote the line: without a heading it is an entry.
        raise UsageError(
            f"the first line of {name} does not name exactly one column {column!r}",
            fix="for a file without a heading, give the column's number: --column 1",
        )
    return headings.index(column.casefold())


def _cell(row: list[str], at: int) -> str | Unreadable:
    return row[at].strip() if at < len(row) else Unreadable(f"has no column {at + 1}")


def _blocks(stream: IO[bytes], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield lines in blocks, with the number of the first. Invalid UTF-8 becomes surrogates, which are unprintable."""
    rest, number = b"", 1
    for chunk in _chunks(stream):
        whole, end, rest = (rest + chunk).rpartition(b"\n")
        if len(rest) > _MAX_LINE:
            raise UsageError(f"{name} has a line longer than 1 MiB", fix="put one entry on each line")
        if end:
            lines = whole.decode(errors="surrogateescape").split("\n")
            yield number, lines
            number += len(lines)
    if rest:
        yield number, [rest.decode(errors="surrogateescape")]


def _chunks(stream: IO[bytes]) -> Iterable[bytes]:
    first = stream.read(_CHUNK).removeprefix(_BOM)
    return chain([first], iter(lambda: stream.read(_CHUNK), b""))
