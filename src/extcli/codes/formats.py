"""How lists of codes and ids are written down: text, CSV, a JSON array or JSON lines, read a few thousand at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePath
from typing import IO, Any

from extcli.errors import UsageError

_CHUNK = 1 << 18
_LONGEST_LINE = 1 << 20
_BATCH = 5_000
_BOM = b"\xef\xbb\xbf"


class FileFormat(StrEnum):
    """What a file is."""

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


TextOf = Callable[[object], str | Unreadable]
"""What a JSON value is as an entry."""


def form_of(path: str) -> FileFormat:
    """By the name, without the ending that says it is compressed."""
    name = PurePath(path)
    suffix = PurePath(name.stem).suffix if name.suffix.lower() == ".gz" else name.suffix
    return _BY_SUFFIX.get(suffix.lower(), FileFormat.TEXT)


def text(stream: IO[bytes], name: str) -> Iterator[Batch]:
    """One entry on each line that is not blank."""
    for number, lines in _blocks(stream, name):
        items = list(map(str.strip, lines))
        if "" not in items:
            yield Batch(range(number, number + len(items)), items)
            continue
        numbered = [(at, item) for at, item in enumerate(items, number) if item]
        yield Batch([at for at, _ in numbered], [item for _, item in numbered])


def csv_column(stream: IO[bytes], name: str, column: str) -> Iterator[Batch]:
    """The cells of one column."""
    lines = chain.from_iterable(lines for _, lines in _blocks(stream, name))
    first = next(lines, "")
    reader = csv.reader(chain([first], lines), delimiter=max(",;\t", key=first.count), strict=True)
    try:
        at = _position_of(column, reader, name)
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
        raise UsageError(f"{name} is not CSV", why=why) from None


def json_array(stream: IO[bytes], name: str, text_of: TextOf) -> Iterator[Batch]:
    """The elements of one array."""
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
                raise UsageError(f"{name} is no JSON array of strings")
            elif event in ("start_array", "start_map"):
                depth += 1
                if depth == 2:
                    items.append(text_of(None))
            elif depth == 1:
                items.append(text_of(value))
            if len(items) >= _BATCH:
                yield Batch(range(position + 1, position + 1 + len(items)), items)
                position, items = position + len(items), []
    except (ijson.JSONError, UnicodeDecodeError):
        # Their own words quote what stands around the place.
        raise UsageError(f"{name} is not JSON", why=f"after item {position + len(items)}") from None
    yield Batch(range(position + 1, position + 1 + len(items)), items)


def json_lines(stream: IO[bytes], name: str, text_of: TextOf) -> Iterator[Batch]:
    """A JSON value on each line that is not blank."""
    for batch in text(stream, name):
        found: list[Any] = []
        for line in batch.items:
            try:
                found.append(text_of(json.loads(line)))
            except (ValueError, RecursionError):
                found.append(Unreadable("is not JSON"))
        yield Batch(batch.numbers, found)


def _position_of(column: str, reader: Iterator[list[str]], name: str) -> int:
    """Where the column is. One that is named takes the heading off the rows."""
    if column.isdecimal():
        if int(column) < 1:
            raise UsageError("--column counts from 1")
        return int(column) - 1
    headings = [heading.strip().casefold() for heading in next(reader, [])]
    if headings.count(column.casefold()) != 1:
        # Without a heading the first line is an entry, so it is not quoted.
        raise UsageError(
            f"the first line of {name} does not name one column {column!r}",
            fix="for a file without such a line give the column's number, --column 1",
        )
    return headings.index(column.casefold())


def _cell(row: list[str], at: int) -> str | Unreadable:
    return row[at].strip() if at < len(row) else Unreadable(f"has no column {at + 1}")


def _blocks(stream: IO[bytes], name: str) -> Iterator[tuple[int, list[str]]]:
    """Lines as they come, with the number of the first; bytes that are not UTF-8 become what cannot be printed."""
    rest, number = b"", 1
    for chunk in _chunks(stream):
        whole, end, rest = (rest + chunk).rpartition(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise UsageError(f"{name} has a line of over 1 MiB", fix="one entry on each line is expected")
        if end:
            lines = whole.decode(errors="surrogateescape").split("\n")
            yield number, lines
            number += len(lines)
    if rest:
        yield number, [rest.decode(errors="surrogateescape")]


def _chunks(stream: IO[bytes]) -> Iterable[bytes]:
    first = stream.read(_CHUNK).removeprefix(_BOM)
    return chain([first], iter(lambda: stream.read(_CHUNK), b""))
