"""Reads lines of CSV or JSON as they arrive, without holding the whole input, and says what each of them sends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from io import FileIO
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from extcli.api.call import Call, answer_submission, buffer_addition, vote_cast
from extcli.errors import UsageError, file_errors, shortened
from extcli.reading import NumberedLines, csv_rows, may_be_headings

T = TypeVar("T")

_CHUNK_BYTES = 1 << 16
_MAX_LINE_BYTES = 1 << 20
_BATCH_LINES = 500
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*")
"""Excludes what Python also accepts, such as 1_0 or digits of other scripts, as mistakes in a file of votes."""


@dataclass(slots=True)
class Line:
    """One parsed line, and its request."""

    number: int
    user: str = ""
    content: Any = None
    fault: str = ""
    """Why the line is invalid; it is not sent then."""
    call: Call = field(init=False)
    """Its request, unless it is invalid."""
    token: str = field(default="", repr=False)
    """Of its user."""


@dataclass(frozen=True, slots=True)
class Operation:
    """How to turn each line into a request."""

    make_call: Callable[[Line], Call]
    """Returns the request. Raises `UsageError` for an invalid line."""
    repeatable: str = ""
    """Why it is harmless to repeat a request; empty if it is not."""
    poll: str | None = None
    """The poll, in which votes may add up: then repeating is not harmless."""


def vote_operation(poll: str) -> Operation:
    """Cast a vote for each line."""
    return Operation(
        lambda line: vote_cast(_vote_value(line), poll=poll),
        repeatable="a vote sent twice counts once, unless votes of the poll add up",
        poll=poll,
    )


def _vote_value(line: Line) -> int:
    text = line.content
    if isinstance(text, str) and not _INTEGER.fullmatch(text):
        raise UsageError(f"not an integer: {text[:20]!r}")
    value: int = int(text) if isinstance(text, str) else text
    return value


def answer_operation(ranking: str) -> Operation:
    """Submit an answer for each line."""
    return Operation(
        lambda line: answer_submission(line.content, ranking=ranking), repeatable="an answer sent twice counts once"
    )


def entry_operation(buffer: str) -> Operation:
    """Add each line to the buffer, unchanged."""
    return Operation(lambda line: buffer_addition(line.content.encode(), buffer=buffer))


Parser = Callable[[NumberedLines], Iterator[Line]]


class InputLines:
    """The lines of a file or pipe, in batches of a few hundred, or fewer when no more have arrived.

    Reads without a buffer: a thread blocked in Python's buffers would keep the process from exiting.
    """

    def __init__(self, source: Path, parse: Parser, *, name_users: bool, skip: int) -> None:
        self.name_users = name_users
        """Whether each line names the user it is sent for."""
        self._parse = parse
        self._skip = skip
        self._is_drained = False
        """Whether no complete line is left, so that reading the next one may block."""
        is_pipe = str(source) == "-"
        with file_errors(f"read {source}"):
            self._file = FileIO(sys.stdin.fileno() if is_pipe else source, closefd=not is_pipe)

    def __iter__(self) -> Iterator[list[Line]]:
        """Yield the lines without the first `skip`."""
        batch: list[Line] = []
        for line in self._parse(self._numbered_lines()):
            if line.number <= self._skip:
                continue
            batch.append(line)
            if len(batch) >= _BATCH_LINES or self._is_drained:
                yield batch
                batch = []
        if batch:
            yield batch

    def _numbered_lines(self) -> NumberedLines:
        """Yield the lines when they arrive, without blank ones at the end."""
        rest, number = b"", 0
        while chunk := self._file.read(_CHUNK_BYTES):
            rest += chunk
            # Blank lines wait for the next line: they may be at the end, or in a cell that is not closed.
            complete = rest[: rest.rfind(b"\n") + 1].rstrip()
            end = rest.find(b"\n", len(complete)) + 1
            lines, rest = rest[:end].split(b"\n")[:-1], rest[end:]
            if len(rest.strip()) > _MAX_LINE_BYTES:
                raise UsageError("the input has a line longer than 1 MiB", fix="put one record on each line")
            for left, line in enumerate(lines, 1 - len(lines)):
                self._is_drained = left == 0
                number += 1
                yield number, _decode_line(line)
        if rest.strip():
            yield from enumerate(map(_decode_line, rest.split(b"\n")), number + 1)

    def count_lines(self) -> int | None:
        """Return the number of lines of a file; `None` for a pipe, whose lines are not known yet."""
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            return None
        start = self._file.tell()
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: self._file.read(_CHUNK_BYTES), b""))
        self._file.seek(start)
        return lines

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_records(source: Path, column: str, *, columns: str | None = None, skip: int = 0) -> InputLines:
    """Read lines with a user and one more column: CSV, with or without a heading, or JSON objects.

    `columns` names the two columns, if not `user` and `column`: `voter,choice`. Raises `UsageError` if it is malformed.
    """
    names = [name.strip() for name in (columns or f"user,{column}").split(",")]
    if len(names) != 2 or not all(names):
        raise UsageError(f"{shortened(columns or '')!r} (--columns) does not name two columns", fix="write USER,VALUE")

    def parse(lines: NumberedLines) -> Iterator[Line]:
        for number, first in lines:
            if first.strip():
                everything = chain([(number, first)], lines)
                if first.lstrip().startswith("{"):
                    return _parse_json_lines(everything, *names)
                return _parse_csv(everything, [name.lower() for name in names], are_given=columns is not None)
        return iter(())

    return InputLines(source, parse, name_users=True, skip=skip)


def read_documents(source: Path, user_field: str | None, *, skip: int = 0) -> InputLines:
    """Read one JSON document per line; `user_field` names the member with the user."""
    names = [] if user_field is None else [user_field]
    return InputLines(source, lambda lines: _parse_json_lines(lines, *names), name_users=bool(names), skip=skip)


def _parse_csv(lines: NumberedLines, names: list[str], *, are_given: bool) -> Iterator[Line]:
    """Yield a line for each row. `are_given` says that the caller named the two columns: then the input has them."""
    needed = " and ".join(names)
    user_at, value_at = 0, 1
    may_be_heading = True
    for number, row in csv_rows(lines):
        if row is None:
            yield Line(number, fault="not CSV, for example because a quote is not closed")
            continue
        cells = [cell.strip().lower() for cell in row] if may_be_heading else []
        may_be_heading = False
        if set(names) <= set(cells):
            user_at, value_at = map(cells.index, names)
        elif cells and (are_given or _may_be_other_headings(cells, names)):
            raise UsageError(
                f"the first line of the input seems to be a heading without the columns {needed}",
                why=f"it has the columns {shortened(', '.join(cells))}",
                fix="name the two columns with --columns USER,VALUE; other columns are ignored. "
                f"If the line is data, put the line {','.join(names)} before it",
            )
        elif len(row) <= max(user_at, value_at):
            yield Line(number, fault=f"{len(row)} column{'s' * (len(row) != 1)}; {needed} are needed")
        else:
            yield Line(number, row[user_at].strip(), row[value_at])


def _may_be_other_headings(cells: list[str], names: list[str]) -> bool:
    has_one = any(name in cells for name in names)
    return len(cells) > 1 and (has_one or may_be_headings(cells))


def _parse_json_lines(lines: NumberedLines, *names: str) -> Iterator[Line]:
    """Yield a line for each JSON text. The members that `names` names are needed: the user and, if given, the value.

    Without the name of a value, the whole text is the content. The id of a user may be a number.
    """
    for number, line in lines:
        if not (text := line.strip()):
            continue
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            yield Line(number, fault="not JSON")
            continue
        if not names:
            yield Line(number, content=text)
        elif not isinstance(document, dict) or not all(name in document for name in names):
            yield Line(number, fault=f"not a JSON object with {' and '.join(names)}")
        elif type(user := document[names[0]]) in (str, int):
            yield Line(number, str(user), document[names[1]] if len(names) > 1 else text)
        else:
            yield Line(number, fault="the user is neither text nor an integer")


def _decode_line(line: bytes) -> str:
    """Decode a line without a byte order mark; invalid UTF-8 becomes surrogates, which are refused before sending."""
    return line.removeprefix(BOM_UTF8).decode(errors="surrogateescape")


async def in_daemon_thread(call: Callable[[], T]) -> T:
    """Return what a call returns that may be blocked on a terminal. asyncio would wait for its own threads at exit."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(call())
        except Exception as error:
            result.set_exception(error)

    Thread(target=run, name="input", daemon=True).start()
    return await asyncio.wrap_future(result)
