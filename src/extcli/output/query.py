"""`--query`: a part of a JSON result, by JMESPath."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jmespath  # type: ignore[import-untyped]
from jmespath.exceptions import JMESPathError, ParseError  # type: ignore[import-untyped]

from extcli.errors import UsageError, shortened
from extcli.output.printer import View
from extcli.output.sanitize import field, pretty_json, visible


def query(expression: str) -> Callable[[Any], tuple[Any, View]]:
    """Return a function that selects a part of a document: `None` if the document has none, and how to print it.

    Both raise `UsageError`: for an expression that is not JMESPath, and for a wrong call of a function in it.
    """
    try:
        compiled = jmespath.compile(expression)
    except ParseError as error:
        # The position counts from 0; at the end of the text the library has none.
        where = "its end" if error.lex_position is None else f"character {error.lex_position + 1}"
        raise _not_usable(expression, f"not JMESPath at {where}") from None
    except JMESPathError as error:
        raise _not_usable(expression, str(error)) from None

    def part_of(document: Any) -> tuple[Any, View]:
        try:
            return compiled.search(document), PART
        except JMESPathError as error:
            raise _not_usable(expression, str(error)) from None

    return part_of


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


PART = View(
    table=lambda value: (
        pretty_json(value) if isinstance(value, (dict, list)) else visible("".join(map(field, _parts(value))))
    ),
    rows=lambda value: (map(field, each if isinstance(each, list) else [each]) for each in _parts(value)),
    items=_parts,
)
"""A part of a result. Plain output has a line for each item of a list, and a field for each item of a list in it."""
