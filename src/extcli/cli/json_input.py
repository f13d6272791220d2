"""JSON values on the command line: an argument, a file, standard input, or `KEY=JSON` pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from extcli import bounded_json
from extcli.errors import UsageError
from extcli.reading import not_json_error, read_source


def read_json(source: str, what: str) -> Any:
    """Return the JSON in standard input (`-`), `@file` or the argument. Raises `UsageError` that names `what`."""
    try:
        is_text = source != "-" and not source.startswith("@")
        text = source.encode(errors="surrogateescape") if is_text else read_source(source.removeprefix("@"))
        return bounded_json.decoded(text)
    except ValueError as error:
        raise not_json_error(what, error) from None


def read_document(arguments: Sequence[str], what: str) -> Any:
    """Return one JSON document, or an object built from `KEY=JSON` pairs."""
    if not arguments:
        raise UsageError(f"{what} is missing", fix="give JSON, @file, - for standard input, or KEY=JSON pairs")
    if len(arguments) == 1 and not is_key_value_pair(arguments[0]):
        return read_json(arguments[0], what)
    return read_pairs(arguments)


def is_key_value_pair(argument: str) -> bool:
    """Return whether an argument is a `KEY=JSON` pair, not a document."""
    return "=" in argument and argument[0] not in '@{["'


def read_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """Return an object from `KEY=VALUE` pairs. A value that is not JSON is text, unless it starts like JSON."""
    document: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{pair!r} is not a KEY=JSON pair")
        document[key] = parse_json_or_text(text, key)
    return document


def parse_json_or_text(text: str, name: str) -> Any:
    """Return the value of a text that is JSON, or the text itself, unless it starts like JSON."""
    try:
        return bounded_json.decoded(text)
    except ValueError as error:
        if text[:1] in ("{", "[", '"'):
            raise not_json_error(f"the value of {name}", error) from None
        return text
