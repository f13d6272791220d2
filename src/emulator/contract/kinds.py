"""The kinds of values in a file of tables, the values that each accepts, and when two JSON values are equal. No I/O.

No message quotes a text, because it may hold a secret from the environment.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from math import isfinite
from typing import Any, Protocol

from emulator.contract.positions import Path

_FIRST_INSTANT = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_INSTANT = datetime.max.replace(tzinfo=UTC)

Report = Callable[[Path, str], None]
"""Takes the path of an invalid field, and what is wrong with it."""


class ValueKind(Protocol):
    """A kind of value."""

    @property
    def allowed(self) -> str:
        """The accepted values in words, to follow "must be …"."""

    def check(self, value: object, path: Path, report: Report) -> None:
        """Report everything in the value that is not allowed."""


@dataclass(frozen=True)
class Simple:
    """A kind whose values all pass one test."""

    allowed: str
    accepts: Callable[[Any], object]

    def check(self, value: object, path: Path, report: Report) -> None:
        if not self.accepts(value):
            report(path, f"must be {self.allowed}")


@dataclass(frozen=True)
class Text:
    """A text. `longest` counts characters, `bytes` its UTF-8; `pattern` replaces the rule that all are printable."""

    longest: int = 0
    bytes: int = 0
    pattern: str = ""
    rule: str = ""

    @property
    def allowed(self) -> str:
        if self.rule:
            return self.rule
        if self.longest:
            return f"a string of 1 to {self.longest} printable characters"
        return f"a string of at most {self.bytes} bytes" if self.bytes else "a string"

    def check(self, value: object, path: Path, report: Report) -> None:
        if not isinstance(value, str):
            in_quotes = ", in quotes" if isinstance(value, int | float) else ""
            report(path, f"must be {self.allowed}{in_quotes}")
        elif not self._has_form(value):
            report(path, f"must be {self.allowed}")
        elif self.bytes and (size := len(value.encode(errors="replace"))) > self.bytes:
            report(path, f"has {size} bytes; the limit is {self.bytes}")

    def _has_form(self, text: str) -> bool:
        if self.pattern:
            return re.fullmatch(self.pattern, text) is not None
        return not self.longest or (1 <= len(text) <= self.longest and text.isprintable())


@dataclass(frozen=True)
class Whole:
    """A whole number."""

    lowest: int
    highest: int

    @property
    def allowed(self) -> str:
        if self.lowest == self.highest:
            return f"{self.lowest}"
        return f"a whole number from {self.lowest} to {self.highest}"

    def check(self, value: object, path: Path, report: Report) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or self.lowest == self.highest != value:
            report(path, f"must be {self.allowed}")
        elif not self.lowest <= value <= self.highest:
            report(path, f"{value} is not within {self.lowest} to {self.highest}")


def instant_of(value: object) -> datetime | None:
    """Return the point in time that a value names, from 1970 on, with a zone; `None` for any other value."""
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", value, re.IGNORECASE):
        try:
            value = datetime.fromisoformat(value.upper())
        except ValueError:
            return None
    if not isinstance(value, datetime) or value.tzinfo is None or not _FIRST_INSTANT <= value <= _LAST_INSTANT:
        return None
    return value


@dataclass(frozen=True)
class Json:
    """A JSON value, or only an object. `bytes` limits its compact JSON."""

    bytes: int
    is_object: bool = False

    @property
    def allowed(self) -> str:
        return f"a JSON {'object' if self.is_object else 'value'} of at most {self.bytes} bytes"

    def check(self, value: object, path: Path, report: Report) -> None:
        if self.is_object and not isinstance(value, dict):
            report(path, f"must be {self.allowed}")
        elif _check_json(value, path, report):
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            size = len(text.encode(errors="replace"))
            if size > self.bytes:
                report(path, f"has {size} bytes of compact JSON; the limit is {self.bytes}")


def _check_json(value: object, path: Path, report: Report) -> bool:
    """Report each part that JSON cannot express, and return whether there is none."""
    if isinstance(value, dict):
        return all([_check_json(member, (*path, name), report) for name, member in value.items()])
    if isinstance(value, list):
        return all([_check_json(element, (*path, at), report) for at, element in enumerate(value)])
    if value is None or isinstance(value, str | int):
        return True
    if not isinstance(value, float):
        report(path, "must be a JSON value; write a date as a string")
        return False
    if not isfinite(value):
        report(path, "must be a finite number")
    return isfinite(value)


def one_of(words: Sequence[str]) -> Simple:
    """Return the kind of one of a few words."""
    return Simple(f"one of {', '.join(words)}", words.__contains__)


@dataclass(frozen=True)
class ListOf:
    """A list. `most` is the largest number of elements."""

    kind: ValueKind
    what: str
    most: int = sys.maxsize
    least: int = 0

    @property
    def allowed(self) -> str:
        if isinstance(self.kind, Table) and not self.least:
            return f"a list of tables; in TOML, write [[{self.what}]] above each table"
        return f"a list of {self.least or 'up'} to {self.most} {self.what}"

    def check(self, value: object, path: Path, report: Report) -> None:
        if not isinstance(value, list):
            report(path, f"must be {self.allowed}")
            return
        if not self.least <= len(value) <= self.most:
            report(path, f"has {len(value)} {self.what}; must have {self.least} to {self.most}")
        for at, element in enumerate(value):
            self.kind.check(element, (*path, at), report)


@dataclass(frozen=True)
class MapOf:
    """A table with a value for each user."""

    kind: ValueKind

    @property
    def allowed(self) -> str:
        return f"a table that maps each user to {self.kind.allowed}"

    def check(self, value: object, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report(path, f"must be {self.allowed}")
            return
        for user, each in value.items():
            USER.check(user, (*path, user), lambda at, problem: report(at, f"a user {problem}"))
            self.kind.check(each, (*path, user), report)


@dataclass(frozen=True)
class Field:
    """A field of a table."""

    kind: ValueKind
    meaning: str
    required: bool = False


@dataclass(frozen=True)
class Table:
    """A table with these fields and no others. `rule` checks fields against each other, once each is valid."""

    fields: Mapping[str, Field]
    rule: Callable[[dict[str, Any], Path, Report], None] = lambda value, path, report: None
    allowed: str = "a table"

    def check(self, value: object, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report(path, f"must be {self.allowed}")
            return
        is_valid = True

        def count(at: Path, problem: str) -> None:
            nonlocal is_valid
            is_valid = False
            report(at, problem)

        for name, each in value.items():
            if name in self.fields:
                self.fields[name].kind.check(each, (*path, name), count)
            else:
                count((*path, name), f"unknown field; {self._hint(name)}")
        for name, field in self.fields.items():
            if field.required and name not in value:
                count((*path, name), f"missing; must be {field.kind.allowed}")
        if is_valid:
            self.rule(value, path, report)

    def _hint(self, name: str) -> str:
        if close := get_close_matches(name, self.fields, 1):
            return f"did you mean {close[0]}?"
        return f"the fields are {', '.join(self.fields)}"


def schema_of(kind: ValueKind) -> dict[str, Any]:
    """Return a JSON Schema of a kind. Its descriptions say what each field accepts."""
    if isinstance(kind, ListOf):
        return {"type": "array", "items": schema_of(kind.kind)}
    if not isinstance(kind, Table):
        return {}
    members = {}
    for name, field in kind.fields.items():
        members[name] = schema_of(field.kind) | {"description": f"{field.meaning}: {field.kind.allowed}"}
    required = [name for name, field in kind.fields.items() if field.required]
    return {"type": "object", "properties": members, "required": required, "additionalProperties": False}


USER = Text(256)


def are_equal_json(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same JSON: 1 equals 1.0, but not `true`. A tuple counts as an array."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(map(are_equal_json, one.values(), map(other.__getitem__, one)))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(are_equal_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
