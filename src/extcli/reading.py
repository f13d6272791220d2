"""Reads what others have written: shapes of responses, lines and items of streams, JSON and CSV that a person typed."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from emulator.contract import user_files
from extcli import bounded_json
from extcli.errors import TooLarge, UnexpectedResponse, UsageError, file_errors, shortened

if TYPE_CHECKING:
    from httpx import Response as Response
else:
    Response = Any  # a command that calls no service does not import httpx

Json = dict[str, Any]
"""An object of JSON, or what is printed as one."""

# Files


def source_name(path: str | Path) -> str:
    """Return what messages call a file, or standard input for `-`."""
    return "standard input" if str(path) == "-" else str(path)


def read_source(path: str | Path) -> bytes:
    """Return the content of a file, or of standard input for `-`. Raises `UsageError`."""
    if str(path) == "-" and sys.__stdin__ is None:
        # `main` replaced it by the null device, which would read as an empty file.
        raise UsageError("standard input is closed")
    with file_errors(f"read {source_name(path)}"):
        if str(path) == "-":
            return user_files.read_bounded(sys.stdin.buffer, user_files.MAX_DOCUMENT_BYTES)
        return user_files.content(path, user_files.MAX_DOCUMENT_BYTES, pipes=True)


# The fields that a response must have

SHAPE_ERRORS = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""The exceptions of code that reads a document of another shape."""

LARGEST_INTEGER = (1 << 53) - 1
"""The largest whole number that every program reads alike from JSON."""

Shape = Any
"""A type, such as `int`, or `object` for any value; several of them as a tuple; `[shape]` for an array; or the shape of
each member by name.

A name that ends with `?` may be absent. Other members are not checked. `None` is null.
"""
_TYPE_NAMES: Mapping[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "an array",
    None: "null",
}


def document_of(response: Response, shape: Shape = dict) -> Any:
    """Return the JSON of a response. Raises `UnexpectedResponse` unless its fields have the types in `shape`."""
    try:
        document = bounded_json.decoded(response.content)
    except ValueError:
        raise UnexpectedResponse(response) from None
    if problem := shape_problem(document, shape):
        raise UnexpectedResponse(response, problem)
    return document


@contextmanager
def expect_shape(response: Response | None) -> Iterator[None]:
    """Raise `UnexpectedResponse` if the block finds that the response does not have the expected shape.

    Without a response, errors are not caught, because the block works on a value that extcli computed.
    """
    try:
        yield
    except SHAPE_ERRORS as error:
        if response is None:
            raise
        missing = isinstance(error, KeyError) and error.args and isinstance(error.args[0], str)
        problem = f"the response has no field {shortened(error.args[0], 40)!r}" if missing else ""
        raise UnexpectedResponse(response, problem) from error


def shape_problem(value: object, shape: Shape, path: str = "") -> str:
    """Return the first field of the wrong type, with the expected and the actual type; empty if all are right."""
    if isinstance(shape, tuple) and not isinstance(shape[0], type):  # an array or object, or null
        return "" if value is None else shape_problem(value, shape[0], path)
    kind = dict if isinstance(shape, Mapping) else list if isinstance(shape, list) else shape
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not any(_is_a(value, each) for each in kinds):
        wanted = " or ".join(_TYPE_NAMES[each] for each in kinds)
        came = next((name for each, name in _TYPE_NAMES.items() if _is_a(value, each)), "a number")
        return f"{path or 'the document'} must be {wanted}, not {came}"
    found: Iterable[str] = ()
    if isinstance(shape, Mapping) and isinstance(value, dict):
        found = (_problem_of_member(value, name, each, path) for name, each in shape.items())
    elif isinstance(shape, list) and isinstance(value, list):
        found = (shape_problem(each, shape[0], f"{path}[{index}]") for index, each in enumerate(value))
    return next(filter(None, found), "")


def _problem_of_member(value: dict[str, Any], name: str, shape: Shape, path: str) -> str:
    key = name.removesuffix("?")
    if key in value:
        return shape_problem(value[key], shape, f"{path}.{key}" if path else key)
    return f"{path or 'the document'} has no field {key!r}" if key == name else ""


def _is_a(value: object, kind: Any) -> bool:
    if kind is object:
        return True
    if kind is None:
        return value is None
    if isinstance(value, bool):
        return kind is bool
    if kind is int:
        return isinstance(value, int) and abs(value) <= LARGEST_INTEGER
    return isinstance(value, (int, float) if kind is float else kind)


# Responses that are read piece by piece, so that only one line or item is in memory

LARGEST_ITEM = 16 << 20
"""Bytes of one line or item. The largest record of an extension service is far smaller."""
MAX_BYTES_IN_MEMORY = 256 << 20
"""Bytes of a streamed response, or of all pages of a list, that are held in memory for a table or a query."""

_JSON_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_JSON_STRING_OR_REST = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)', re.DOTALL)
"""A text, or the beginning of one that the piece does not end."""
_BRACKET_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Brackets to 1 and -1, as signed bytes."""
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_DIGITS = b"0123456789"
_MOST_DIGITS = 4_300
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{%d}" % (_MOST_DIGITS + 1))


def stream_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each line without its end; a last one also without a line break.

    Raises `TooLarge` for a line above `LARGEST_ITEM`.
    """
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        *complete, rest = piece.split(b"\n")
        for line in complete:
            yield b"".join([*parts, line]).removesuffix(b"\r")
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > LARGEST_ITEM:
            raise TooLarge("a line of the response", LARGEST_ITEM)
    if size:
        yield b"".join(parts).removesuffix(b"\r")


def stream_items(pieces: Iterable[bytes], at: str, source: str) -> Iterator[Any]:
    """Yield the values at an ijson path of a JSON text, such as `result.item`.

    Raises `TooLarge` for more than `LARGEST_ITEM` bytes without such a value, and `ValueError` for another text.
    """
    import ijson  # type: ignore[import-untyped]

    size = 0

    def counted() -> Iterator[bytes]:
        nonlocal size
        for piece in checked_pieces(pieces):
            size += len(piece)
            if size > LARGEST_ITEM:
                raise TooLarge(f"an item in {source}", LARGEST_ITEM)
            yield piece

    try:
        for item in ijson.items(ijson.from_iter(counted()), at):
            size = 0
            yield item
    except (ijson.JSONError, ArithmeticError) as error:  # also an exponent of 20 digits
        raise ValueError("not JSON") from error


def limit_size(pieces: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Yield pieces that are held in memory as a whole. Raises `TooLarge` above `MAX_BYTES_IN_MEMORY`."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_BYTES_IN_MEMORY:
            raise TooLarge(source, MAX_BYTES_IN_MEMORY)
        yield piece


def checked_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a JSON text. Raises `ValueError` before ijson sees what it cannot parse safely.

    Its memory grows with the square of the depth, and an error inside its compiled parser may end the process: Python
    refuses to convert a number of over 4,300 digits.
    """
    before, depth, digits = b"", 0, 0
    for piece in pieces:
        text = before + piece
        end = _end_of_closed_strings(text)
        rest = text[end:]
        # A text that goes on in the next piece. Only its quote and the state of its end matter.
        before = rest[:1] + b"\\" * ((len(rest) - len(rest.rstrip(b"\\"))) % 2)
        structure = _JSON_STRING.sub(b"", text[:end])
        steps = memoryview(structure.translate(_BRACKET_STEPS, _NOT_BRACKETS)).cast("b")
        if max(accumulate(steps, initial=depth)) > bounded_json.DEEPEST:
            raise ValueError("nested too deeply")
        depth += sum(steps)
        first = len(structure) - len(structure.lstrip(_DIGITS))
        last = len(structure) - len(structure.rstrip(_DIGITS))
        if digits + first > _MOST_DIGITS or _LONG_NUMBER.search(structure):
            raise ValueError(f"a number of over {_MOST_DIGITS:,} digits")
        digits = last + (digits if last == len(structure) else 0)
        yield piece


def _end_of_closed_strings(text: bytes) -> int:
    """Return the position where an unclosed string begins; the length of the piece if all strings are closed."""
    if b"\\" in text:
        last = deque(_JSON_STRING_OR_REST.finditer(text), maxlen=1)
        return last[0].start() if last and last[0][1] != b'"' else len(text)
    return text.rindex(b'"') if text.count(b'"') % 2 else len(text)


# JSON that a person typed

_IN_QUOTES: Final = "put single quotes around the JSON, so that your shell keeps its double quotes: '{\"key\": 1}'"
_SHOWN_CHARACTERS: Final = 20
"""Characters in front of the mistake that are repeated."""


def not_json_error(what: str, error: ValueError | RecursionError, *, fix: str = "") -> UsageError:
    """Return the error for a text that is no JSON; `fix` replaces the advice about the shell."""
    if isinstance(error, RecursionError):
        return UsageError(f"{what} is nested too deeply")
    if not isinstance(error, json.JSONDecodeError):
        return UsageError(f"{what} is not JSON", why=str(error), fix=fix)
    before = shortened(error.doc[: error.pos].rsplit("\n", 1)[-1][-_SHOWN_CHARACTERS:])
    place = f"line {error.lineno}, column {error.colno}" + (f", after {before}" if before else "")
    return UsageError(f"{what} is not JSON", why=f"{error.msg} ({place})", fix=fix or _IN_QUOTES)


# CSV files: their rows, their delimiter, and lines of headings

_HEADINGS = {
    *("code", "codes", "user", "users", "user_id", "user_ids", "userid", "identifier", "id"),
    *("viewer", "viewers", "viewer_id", "voter", "voters", "opaque_id", "opaque_user_id"),
}
"""Usual headings of columns with codes or users, in small letters."""
NumberedLines = Iterator[tuple[int, str]]
"""Lines with their numbers."""

_MOST_LINES = 1_000
"""The most lines of a cell."""
_DELIMITER = re.compile('"(?:[^"]|"")*"|([,;\t])')


def csv_rows(lines: NumberedLines) -> Iterator[tuple[int, list[str] | None]]:
    """Yield each row with the number of its first line; `None` for a line that is not CSV. Skips blank lines.

    A quoted cell may have several lines. If it does not end, only its first line is wrong: a stray quote in one text
    does not swallow the next lines.
    """
    ahead = deque[tuple[int, str]]()
    delimiter = ""

    def following() -> tuple[int, str] | None:
        return ahead.popleft() if ahead else next(lines, None)

    def growing() -> Iterator[str]:
        """Yield the line, and as long as a cell is not closed, the next ones."""
        yield f"{text}\n"
        while len(more) < _MOST_LINES and (line := following()):
            more.append(line)
            yield f"{line[1]}\n"

    while first := following():
        number, text = first
        if not text.strip():
            continue
        delimiter = delimiter or _delimiter_of(text)
        more: list[tuple[int, str]] = []
        try:
            yield number, next(csv.reader(growing(), delimiter=delimiter, strict=True), None)
        except csv.Error:
            ahead.extendleft(reversed(more))
            yield number, None


def _delimiter_of(line: str) -> str:
    """Return the delimiter of a file with this first line: the first comma, semicolon or tab outside of quotes."""
    return next((found[1] for found in _DELIMITER.finditer(line) if found[1]), ",")


def is_heading(cell: str) -> bool:
    """Return whether a cell or line in the first line of a file is a usual heading, in any spelling."""
    return cell.strip().casefold().replace(" ", "_") in _HEADINGS


def may_be_headings(row: Iterable[str]) -> bool:
    """Return whether the first row of a file may be headings: it has a usual one, or no digit, unlike ids."""
    return any(map(is_heading, row)) or not any(map(str.isdigit, "".join(row)))
