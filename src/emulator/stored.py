"""A feature's stored data: the kinds of its records, and how to check one that it did not write itself.

A check is given a record of `engines/records.py`, and raises `ValueError`, or `BadRequest` of a rule that
calls use too. The message names the field, the value and the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from emulator.engines.records import Record
from emulator.wire import json_codec

T = TypeVar("T")


class Stored(NamedTuple):
    """One type of records of a kind, with the check of its content."""

    type: type[Record]
    kind: str
    """The kind in its key. One that ends with `/` is the beginning of several kinds."""
    check: Callable[[Any], object]


def wrong(name: str, problem: str) -> ValueError:
    """Return the error for an invalid field of a stored record."""
    return ValueError(f"{name}: {problem}")


def anything(record: Record) -> None:
    """Accept any record: for types without content, or with content that no call reads."""


def decoded(value: bytes, shape: type[T], name: str) -> T:
    """Decode a stored value as its feature reads it. `name` is its field's."""
    try:
        value.decode()  # msgspec does not validate strings in fields that it skips
        return msgspec.json.decode(value, type=shape)
    except msgspec.ValidationError as error:
        field, colon, text = json_codec.error_text(error).rpartition(": ")
        raise (wrong(f"{name}.{field}", text) if colon else wrong(name, text)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise wrong(name, json_codec.error_text(error)) from None


def decode_check(shape: Any) -> Callable[[Any], object]:
    """Return the check of documents whose value has this type."""
    return lambda record: decoded(record.value, shape, VALUE)


def text_of(value: bytes, name: str) -> str:
    """Decode a stored text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise wrong(name, "must be text in UTF-8") from None


VALUE: Final = "value"
"""The name of the content of a document and of an entry of a log, in a snapshot."""
