"""Parses lines of CSV or JSON from a file or standard input as they arrive, without holding the whole input."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from extcli.errors import UsageError, shortened
from extcli.reading.csv_files import delimiter_of, may_be_headings

_CHUNK = 1 << 16
_MAX_LINE = 1 << 20
_BATCH = 500
_MOST_LINES = 1_000
"""The most lines of a cell, and of blank lines that are kept because they may be in one."""


@dataclass(slots=True)
class Line:
    """One parsed line."""

    number: int
    user: str | None = None
    content: Any = None
    fault: str = ""
    """Why the line cannot be parsed; it is not sent then."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the two columns that are read."""

    user: str
    value: str
    named: bool
    """Whether the caller named them; then the input must have them."""


Numbered = Iterator[tuple[int, str]]
Parser = Callable[[Numbered], Iterator[Line]]


class Input:
    """The numbered lines of a file or pipe, without blank ones at its end. Lines are yielded when they arrive.

    Reads the descriptor directly: a thread blocked in Python's buffers would keep the process from exiting.
    """

    def __init__(self, source: Path) -> None:
        self.size: int | None = None
        self.consumed = 0
        self._pending: list[tuple[int, str]] = []
        if str(source) == "-":
            self._descriptor = sys.stdin.fileno()
            return
        try:
            self._descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self.size = os.fstat(self._descriptor).st_size or None
        except OSError as error:
            raise UsageError(f"cannot read {source}", why=error.strerror or "") from None
        if source.is_dir():
            raise UsageError(f"cannot read {source}", why="it is a directory")

    def __iter__(self) -> Iterator[tuple[int, str]]:
        rest, number, blank = b"", 0, list[tuple[int, bytes]]()
        while chunk := os.read(self._descriptor, _CHUNK):
            self.consumed += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > _MAX_LINE:
                raise UsageError("the input has a line longer than 1 MiB", fix="put one record on each line")
            lines = [*blank, *enumerate(whole, number + 1)]
            end = next((at for at in range(len(lines), 0, -1) if lines[at - 1][1].strip()), 0)
            # Blank lines, which are part of a cell if it is not closed, wait for the next line: `drained` stays exact.
            blank = lines[end:][:_MOST_LINES]
            self._pending = [(at, _decode_line(line)) for at, line in lines[:end]]
            self._pending.reverse()
            number += len(whole)
            while self._pending:
                yield self._pending.pop()
        if rest.strip():
            yield from ((at, _decode_line(line)) for at, line in (*blank, (number + 1, rest)))

    @property
    def drained(self) -> bool:
        """Whether no complete line is buffered, so that reading the next one may block."""
        return not self._pending

    def close(self) -> None:
        """Close the file."""
        if self.size is not None:
            os.close(self._descriptor)


class Batches:
    """The parsed lines of an input in batches of a few hundred, without the first `skip` lines."""

    def __init__(self, source: Path, parse: Parser, *, name_users: bool, skip: int) -> None:
        self.input = Input(source)
        self._skip = skip
        self.name_users = name_users
        """Whether each line names the user it is sent for."""
        self._lines = parse(iter(self.input))

    def __iter__(self) -> Iterator[list[Line]]:
        batch: list[Line] = []
        for line in self._lines:
            if line.number <= self._skip:
                continue
            batch.append(line)
            if len(batch) >= _BATCH or self.input.drained:
                yield batch
                batch = []
        if batch:
            yield batch


def records(source: Path, column: str, *, columns: str | None = None, skip: int = 0) -> Batches:
    """Read lines with a user and one more column: CSV, with or without a heading, or JSON objects.

    `columns` names the two columns, if not `user` and `column`: `voter,choice`. Raises `UsageError` if it is malformed.
    """
    user, _, value = (columns or f"user,{column}").partition(",")
    user, value = user.strip(), value.strip()
    if not user or not value or "," in value:
        raise UsageError(f"{shortened(columns or '')!r} (--columns) does not name two columns", fix="write USER,VALUE")
    wanted = Columns(user, value, named=columns is not None)
    return Batches(source, lambda lines: _records(lines, wanted), name_users=True, skip=skip)


def documents(source: Path, user_field: str | None, *, skip: int = 0) -> Batches:
    """Read one JSON document per line; `user_field` names the member with the user."""
    return Batches(source, lambda lines: _documents(lines, user_field), name_users=user_field is not None, skip=skip)


def _records(lines: Numbered, column: Columns) -> Iterator[Line]:
    at, first = next(((at, text) for at, line in lines if (text := line.removeprefix("\ufeff")).strip()), (1, ""))
    everything = chain([(at, first)] if first else [], lines)
    return _json_records(everything, column) if first.lstrip().startswith("{") else _csv(everything, first, column)


def _csv(lines: Numbered, first: str, wanted: Columns) -> Iterator[Line]:
    delimiter = delimiter_of(first)
    user, column = wanted.user.lower(), wanted.value.lower()
    user_at, value_at = 0, 1
    may_be_heading = True
    for number, row in _rows(lines, delimiter):
        if isinstance(row, str):
            yield Line(number, fault=row)
            continue
        names = [cell.strip().lower() for cell in row] if may_be_heading else []
        may_be_heading = False
        if user in names and column in names:
            user_at, value_at = names.index(user), names.index(column)
        elif names and (wanted.named or _may_be_other_heading(names, wanted)):
            raise UsageError(
                f"the first line of the input seems to be a heading without the columns {user} and {column}",
                why=f"it has the columns {shortened(', '.join(names))}",
                fix="name the two columns with --columns USER,VALUE; other columns are ignored. "
                f"If the line is data, put the line {user},{column} before it",
            )
        elif len(row) <= max(user_at, value_at):
            yield Line(number, fault=f"{len(row)} column{'s' * (len(row) != 1)}; {user} and {column} are needed")
        else:
            yield Line(number, row[user_at].strip(), row[value_at])


def _may_be_other_heading(names: list[str], wanted: Columns) -> bool:
    """Return whether the first line may be a heading that lacks the two columns."""
    return len(names) > 1 and (wanted.user.lower() in names or wanted.value.lower() in names or may_be_headings(names))


def _rows(lines: Numbered, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield each row with the number of its first line; for a line that is not CSV, what is wrong.

    A quoted cell may have several lines. If it does not end, only its first line is wrong: a stray quote in one text
    does not swallow the next lines.
    """
    ahead = deque[tuple[int, str]]()
    while entry := ahead.popleft() if ahead else next(lines, None):
        number, text = entry
        row, more = _row(text, delimiter), list[tuple[int, str]]()
        if row == _NOT_CLOSED:
            while text.count('"') % 2 and len(more) < _MOST_LINES:
                following = ahead.popleft() if ahead else next(lines, None)
                if following is None:
                    break
                more.append(following)
                text = f"{text}\n{following[1]}"
            whole = _row(text, delimiter)
            if isinstance(whole, str):
                ahead.extendleft(reversed(more))
            else:
                row = whole
        if text.strip():
            yield number, row


def _row(text: str, delimiter: str) -> list[str] | str:
    """Return the cells of a row, or what is wrong with it."""
    try:
        return next(csv.reader([text.removesuffix("\r")], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        return f"not CSV: {_CSV_FAULTS.get(str(error), error)}"


_CSV_FAULTS = {"unexpected end of data": "a quote is not closed on its line"}
"""Clearer words for errors of Python's parser."""
_NOT_CLOSED = f"not CSV: {_CSV_FAULTS['unexpected end of data']}"


def _json_records(lines: Numbered, wanted: Columns) -> Iterator[Line]:
    for number, text in _without_blank(lines):
        document = _parsed(text)
        if not isinstance(document, dict) or wanted.user not in document or wanted.value not in document:
            yield Line(number, fault=f"not a JSON object with {wanted.user} and {wanted.value}")
        else:
            yield _line_of_user(number, document[wanted.user], document[wanted.value])


def _documents(lines: Numbered, user_field: str | None) -> Iterator[Line]:
    for number, text in _without_blank(lines):
        stripped = text.strip()
        document = _parsed(stripped)
        if document is _NOT_JSON:
            yield Line(number, fault="not JSON")
        elif user_field is None:
            yield Line(number, None, stripped)
        elif not isinstance(document, dict) or user_field not in document:
            yield Line(number, fault=f"not a JSON object with {user_field}")
        else:
            yield _line_of_user(number, document[user_field], stripped)


_NOT_JSON = object()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _without_blank(lines: Numbered) -> Numbered:
    return ((number, text) for number, text in lines if text.strip())


def _line_of_user(number: int, user: Any, content: Any) -> Line:
    """Return a line with its user, whose id in JSON may be a number."""
    if isinstance(user, str):
        return Line(number, user, content)
    if isinstance(user, int) and not isinstance(user, bool):
        return Line(number, str(user), content)
    return Line(number, fault="the user is neither text nor an integer")


def _decode_line(line: bytes) -> str:
    """Decode a line; invalid UTF-8 becomes surrogates, which are refused before sending."""
    return line.decode(errors="surrogateescape")


T = TypeVar("T")


class ReaderThread(Generic[T]):
    """Fetches items from an iterator in a thread, one at a time.

    The thread is a daemon, because it may be blocked on a terminal. asyncio would wait for its own threads at exit.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._requests: SimpleQueue[asyncio.Future[T | None] | None] = SimpleQueue()
        Thread(target=self._run, name="input", daemon=True).start()

    def next_item(self) -> asyncio.Future[T | None]:
        """Return the next item from the thread, or `None` after the last."""
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._requests.put(future)
        return future

    def close(self) -> None:
        """End the thread after the item it is fetching."""
        self._requests.put(None)

    def _run(self) -> None:
        while (future := self._requests.get()) is not None:
            try:
                item, error = next(self._items, None), None
            except Exception as raised:
                item, error = None, raised
            try:
                future.get_loop().call_soon_threadsafe(_settle, future, item, error)
            except RuntimeError:  # the loop has ended
                return


def _settle(future: asyncio.Future[T | None], item: T | None, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(item)
