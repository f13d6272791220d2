"""How a feature checks a stored record that it did not write itself, such as one of a snapshot.

A check is given a record of `storage/records.py`, and raises `ValueError`, or `BadRequest` of a rule that calls use
too. The message names the field, the value and the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.storage.records import Record

T = TypeVar("T")


class Stored(NamedTuple):
    """One type of records of a kind, with the check of its content."""

    type: type[Record]
    kind: str
    """The kind in its key. One that ends with `/` is the beginning of several kinds."""
    check: Callable[[Any], object]
    has_secret_name: bool = False
    """Whether an error does not repeat the names of such records, and a list shows only the start of them: digests."""


OWN_KINDS = frozenset({"ids", "id_counts", "user", "opaque"})
"""The kinds, up to a `/`, of the service's own records: the limits on ids, and the directory of users."""


def is_own(key: Key) -> bool:
    """Whether a record is one of the service's own, whose expiry is not reported."""
    return key.kind.partition("/")[0] in OWN_KINDS


def wrong(name: str, problem: str) -> ValueError:
    """Return the error for an invalid field of a stored record."""
    return ValueError(f"{name}: {problem}")


def accept_any(record: Record) -> None:
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


VALUE = "value"
"""The name of the content of a document and of an entry of a log, in a snapshot."""
