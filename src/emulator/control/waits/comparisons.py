"""The comparisons of a condition: how a query writes each, and which values it accepts. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from emulator.contract.json_values import are_equal
from emulator.wire.refusals import invalid_parameter

MISSING: Final = object()
"""Stands for a value that is not there."""
_NUMBER: Final = re.compile(r"(?P<exactly>=?)(?P<number>-?[0-9]{1,15})")


class Comparison(Protocol):
    """Compares the actual value with the wanted one."""

    @property
    def text(self) -> str:
        """The condition in words, such as `at least 3`."""

    def accepts(self, found: Any) -> bool: ...


@dataclass(frozen=True)
class AtLeast:
    """Holds for this number or more."""

    number: int

    @property
    def text(self) -> str:
        return f"at least {self.number}"

    def accepts(self, found: Any) -> bool:
        return bool(found >= self.number)


@dataclass(frozen=True)
class Exactly:
    """Holds for exactly this number."""

    number: int

    @property
    def text(self) -> str:
        return f"exactly {self.number}"

    def accepts(self, found: Any) -> bool:
        return bool(found == self.number)


@dataclass(frozen=True)
class Equal:
    """Holds for an equal JSON value. Numbers are equal by value, objects whatever the order of their members."""

    value: Any

    @property
    def text(self) -> str:
        return msgspec.json.encode(self.value).decode()

    def accepts(self, found: Any) -> bool:
        return found is not MISSING and are_equal(found, self.value)


@dataclass(frozen=True)
class Present:
    """Holds for any value that exists."""

    text: str = "any value"

    def accepts(self, found: Any) -> bool:
        return found is not MISSING


def comparison(name: str, text: str, *, lowest: int | None = 0) -> Comparison:
    """Parse `3`, which means at least three, or `=3`, exactly three. Raises `BadRequest` naming the parameter.

    At least 0 is refused, because that is always true.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        needed = "a number, for at least that, or = and a number, for exactly"
        raise invalid_parameter(name, text, needed)
    number = int(match["number"])
    if lowest is not None and number < lowest:
        raise invalid_parameter(name, number, f"{lowest} or more")
    if match["exactly"]:
        return Exactly(number)
    if number == lowest:
        problem = f"at least {number} is always true; ={number} means exactly {number}"
        raise invalid_parameter(name, number, f"a higher number; ={number} means exactly {number}", problem)
    return AtLeast(number)
