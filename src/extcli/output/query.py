"""`--query`: a part of a JSON result, by JMESPath."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jmespath  # type: ignore[import-untyped]
from jmespath.exceptions import JMESPathError, ParseError  # type: ignore[import-untyped]

from extcli.errors import UsageError, shortened
from extcli.output.printer import View
from extcli.output.sanitize import field, json_text, pretty_json


class Query:
    """One expression."""

    def __init__(self, expression: str) -> None:
        """Raises `UsageError` for an expression that is not JMESPath."""
        try:
            self._compiled = jmespath.compile(expression)
        except ParseError as error:
            # The position counts from 0; at the end of the text the library has none.
            where = "its end" if error.lex_position is None else f"character {error.lex_position + 1}"
            raise _not_usable(expression, f"not JMESPath at {where}") from None
        except JMESPathError as error:
            raise _not_usable(expression, str(error)) from None
        self._expression = expression
        self.view = PART

    def part_of(self, document: object) -> Any:
        """Return the part of a document; `None` if it has none. Raises `UsageError` for a wrong call of a function."""
        try:
            return self._compiled.search(document)
        except JMESPathError as error:
            raise _not_usable(self._expression, str(error)) from None


def _not_usable(expression: str, why: str) -> UsageError:
    return UsageError(
        f"--query: cannot use {shortened(expression, 60)!r}",
        why=shortened(why),
        fix="see https://jmespath.org/specification.html; `stats.count` and `polls[].id` are examples",
    )


def _parts(value: Any) -> Iterable[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _text(value: object) -> str:
    """Return text as it is, for scripts, and any other value as JSON."""
    return field(value) if isinstance(value, str) else json_text(value)


def _row(value: object) -> Sequence[str]:
    return [_text(each) for each in value] if isinstance(value, list) else [_text(value)]


PART = View(
    table=lambda value: pretty_json(value) if isinstance(value, (dict, list)) else "".join(map(_text, _parts(value))),
    rows=lambda value: map(_row, _parts(value)),
    items=_parts,
)
"""A part of a result. Plain output has a line for each item of a list, and a field for each item of a list in it."""
