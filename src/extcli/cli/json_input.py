"""What the user hands over as a value: JSON as an argument, from a file, from standard input, or `KEY=JSON` pairs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from extcli.errors import UsageError


def read_bytes(source: str) -> bytes:
    """The bytes of `-` (standard input), `@file`, or the argument itself."""
    if source == "-":
        if sys.__stdin__ is None:
            # What `main` put in its place would read as empty, which may be a value.
            raise UsageError("standard input is closed")
        return sys.stdin.buffer.read()
    if not source.startswith("@"):
        return source.encode(errors="surrogateescape")
    try:
        return Path(source[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"{source[1:]} cannot be read", why=error.strerror or "") from None


def read_json(source: str, what: str) -> Any:
    """The JSON of `-`, `@file` or the argument; raises `UsageError` for what is none."""
    try:
        return json.loads(read_bytes(source))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON", why=str(error), fix="quote it for your shell: '{\"key\": 1}'") from None


def read_document(arguments: Sequence[str], what: str) -> Any:
    """One JSON document, or an object made of `KEY=JSON` pairs."""
    if not arguments:
        raise UsageError(f"{what} is missing", fix="give JSON, @file, - for standard input, or KEY=JSON pairs")
    if len(arguments) == 1 and (arguments[0] == "-" or arguments[0][:1] in '@{["' or "=" not in arguments[0]):
        return read_json(arguments[0], what)
    return read_pairs(arguments)


def read_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """An object of `KEY=VALUE` pairs. What does not read as JSON is text, unless it sets out to be more."""
    document: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{pair!r} is no KEY=JSON pair")
        try:
            document[key] = json.loads(text)
        except (ValueError, RecursionError) as error:
            if text[:1] in ("{", "[", '"'):
                raise UsageError(f"the value of {key} is not JSON", why=str(error)) from None
            document[key] = text
    return document
