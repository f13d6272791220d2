"""Checks that a response has the fields that a command reads, and says why a typed text is not JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from extcli import bounded_json
from extcli.errors import UnexpectedResponse, UsageError, shortened

if TYPE_CHECKING:
    from httpx import Response

SHAPE_ERRORS = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""The exceptions of code that reads a document of another shape."""

LARGEST_INTEGER = (1 << 53) - 1
"""The largest whole number that every program reads alike from JSON."""

Shape = Any
"""A type, such as `int`, or `object` for any value; several of them as a tuple; `[shape]` for an array; or the shape of
each member by name.

A name that ends with `?` may be absent. Other members are not checked. `None` is null.
"""
_NAMES: Mapping[Any, str] = {
    str: "a text",
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
    if problem := problem_of(document, shape):
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
        problem = f"it has no field {shortened(error.args[0], 40)!r}" if missing else ""
        raise UnexpectedResponse(response, problem) from error


def problem_of(value: object, shape: Shape, path: str = "") -> str:
    """Return the first field of the wrong type, with the expected and the actual type; empty if all are right."""
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return _wrong_type(path, "an object", value)
        for name, each in shape.items():
            key = name.removesuffix("?")
            if key in value:
                if problem := problem_of(value[key], each, f"{path}.{key}" if path else key):
                    return problem
            elif key == name:
                return f"{path or 'it'} has no field {key!r}"
        return ""
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _wrong_type(path, "an array", value)
        found = (problem_of(each, shape[0], f"{path}[{index}]") for index, each in enumerate(value))
        return next(filter(None, found), "")
    if isinstance(shape, tuple) and not isinstance(shape[0], type):  # an array or object, or null
        return "" if value is None else problem_of(value, shape[0], path)
    kinds = shape if isinstance(shape, tuple) else (shape,)
    return "" if any(_is_a(value, kind) for kind in kinds) else _wrong_type(path, _either_of(kinds), value)


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


def _either_of(kinds: tuple[Any, ...]) -> str:
    return " or ".join(_NAMES[kind] for kind in kinds)


def _wrong_type(path: str, wanted: str, value: object) -> str:
    came = next((name for kind, name in _NAMES.items() if _is_a(value, kind)), "a number")
    return f"{path or 'it'} must be {wanted}, not {came}"


_IN_QUOTES: Final = "put single quotes around the JSON, so that your shell keeps its double quotes: '{\"key\": 1}'"
_SHOWN: Final = 20
"""Characters in front of the mistake that are repeated."""


def not_json(what: str, error: ValueError | RecursionError, *, fix: str = "") -> UsageError:
    """Return the error for a text that is no JSON; `fix` replaces the advice about the shell."""
    if isinstance(error, RecursionError):
        return UsageError(f"{what} is nested too deeply")
    if not isinstance(error, json.JSONDecodeError):
        return UsageError(f"{what} is not JSON", why=str(error), fix=fix)
    before = shortened(error.doc[: error.pos].rsplit("\n", 1)[-1][-_SHOWN:])
    place = f"line {error.lineno}, column {error.colno}" + (f", after {before}" if before else "")
    return UsageError(f"{what} is not JSON", why=f"{error.msg} ({place})", fix=fix or _IN_QUOTES)
