"""Finds the line and column of every field in a text. No I/O."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Where a field is: names of members, and positions in arrays from 0."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = r'"""(?:\\.|[^\\])*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:\\.|[^"\\])*"|' r"'[^']*'"
_PART = re.compile(rf"{_STRING}|{_BARE.pattern}", re.DOTALL)
_SCALAR = re.compile(rf"{_STRING}|[^,\]}}#\n]*", re.DOTALL)
_HEADER = re.compile(r"\[\[?")
_CLOSING_BRACKETS = {"[": "]", "{": "}"}


class Position(NamedTuple):
    """A place in a text. Both numbers count from 1; columns are characters."""

    line: int
    column: int


START = Position(1, 1)


def nearest_position(places: Mapping[Path, Position], path: Path) -> Position:
    """Return the position of a field; for a missing field, the position of its table."""
    while path and path not in places:
        path = path[:-1]
    return places.get(path, START)


def path_text(path: Path) -> str:
    """Return a path as messages show it: `polls[0].votes.U1`. The service writes paths in the same way."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _BARE.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def field_positions(text: str) -> Mapping[Path, Position]:
    """Return where each field begins: members at their name, elements of arrays at their value, tables at their header.

    The text must be valid JSON or TOML.
    """
    scanner = _Scanner(text)
    if text.lstrip().startswith("{"):
        scanner.scan_value(())
    else:
        scanner.scan_document()
    starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def position(offset: int) -> Position:
        line = bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    return {path: position(offset) for path, offset in scanner.found.items()}


class _Scanner:
    """Scans valid TOML or JSON, and records the offset of each field. One method scans values of both."""

    def __init__(self, text: str) -> None:
        self.found: dict[Path, int] = {}
        self._text = text
        self._at = 0
        self._elements: dict[Path, int] = {}
        """The number of tables so far in each array of tables."""

    def scan_document(self) -> None:
        """Scan a TOML document."""
        table: Path = ()
        while self._peek():
            start = self._at
            if opening := self._take(_HEADER):
                table = self._table(start, self._key(), is_element=opening == "[[")
                self._peek()
                self._at += len(opening)
                self.found[table] = start
            else:
                self._member(table)

    def scan_value(self, path: Path) -> None:
        """Scan the value of `path`."""
        first = self._peek()
        if first in _CLOSING_BRACKETS:
            self._items(path, _CLOSING_BRACKETS[first])
        else:
            self._take(_SCALAR)

    def _items(self, path: Path, end: str) -> None:
        self._at += 1
        count = 0
        while self._peek() != end:
            if end == "]":
                self.found[*path, count] = self._at
                self.scan_value((*path, count))
                count += 1
            else:
                self._member(path)
            if self._peek() == ",":
                self._at += 1
        self._at += 1

    def _member(self, path: Path) -> None:
        start, key = self._at, self._key()
        for length in range(1, len(key) + 1):
            self.found.setdefault((*path, *key[:length]), start)
        self._peek()
        self._at += 1  # = or :
        self.scan_value((*path, *key))

    def _key(self) -> list[str]:
        """Scan the parts of a key, which dots separate."""
        parts: list[str] = []
        while True:
            self._peek()
            part = self._take(_PART)
            parts.append(part if _BARE.fullmatch(part) else _unquoted(part))
            if self._peek() != ".":
                return parts
            self._at += 1

    def _table(self, start: int, key: list[str], *, is_element: bool) -> Path:
        """Return the path of a header. In the name of an array of tables, it means the last table."""
        path: Path = ()
        for number, part in enumerate(key, 1):
            path = (*path, part)
            self.found.setdefault(path, start)
            if is_element and number == len(key):
                self._elements[path] = self._elements.get(path, 0) + 1
            if path in self._elements:
                path = (*path, self._elements[path] - 1)
        return path

    def _peek(self) -> str:
        """Skip spaces and comments, and return the next character."""
        self._take(_SPACE)
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Skip what matches here, and return it."""
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]


def _unquoted(text: str) -> str:
    """Return the value of a string of JSON or TOML."""
    try:
        value = json.loads(text)  # first, because JSON has the escape \/
    except ValueError:
        value = tomllib.loads(f"a={text}")["a"]
    return str(value)
