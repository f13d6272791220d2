"""Finds the values that a refused request sent. No I/O."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from emulator.wire.url import parameters_of

_SHORT: Final = 60
"""Characters of a body that is shown as it is."""


def what_was_sent(detail: str, path: str, body: bytes) -> str:
    """Return the field that the detail of an error begins with and its value, or a short body; empty if unknown.

    `path` has the query. Path and body are as the journal has them: without secrets, and perhaps cut off.
    """
    field, colon, _ = detail.partition(": ")
    if not colon:
        text = body.decode(errors="replace")
        return f"the body {text}" if text and len(text) <= _SHORT else ""
    value = _value_of(field, path, body)
    return f"{field} {value}" if value else ""


def _value_of(field: str, path: str, body: bytes) -> str:
    """Return the value of a field as it was sent, as JSON; empty if unknown."""
    query = parameters_of(path.partition("?")[2])
    if field in query:
        return msgspec.json.encode(query[field]).decode()
    try:
        value: Any = msgspec.json.decode(body) if body else None
        for member in re.findall(r"[\w$-]+", field) if value is not None else ():
            value = value[int(member)] if isinstance(value, list) else value[member]
    except (msgspec.MsgspecError, KeyError, IndexError, ValueError, TypeError, RecursionError):
        return ""
    return "" if value is None else msgspec.json.encode(value).decode()
