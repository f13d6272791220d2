"""The kinds of records in storage. A feature declares its own; lists, waits, snapshots and the dashboard follow.

A feature also says how to check a record that it did not write itself. A check is given a record of
`storage/records.py`, and raises `ValueError`, or `BadRequest` of a rule that calls use too. The message names the
field, the value and the limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from emulator.core.callers import Caller
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


VALUE = "value"
"""The name of the content of a document and of an entry of a log, in a snapshot."""


class Measured(NamedTuple):
    """The value that a wait compares: a property of one record, or of all records of a kind in a channel."""

    counts: Mapping[str, int] = {}
    """How many, by value or key; by an empty text if there is no value."""
    newest: bytes = b""
    """The newest entry as JSON; empty if there is none."""
    document: bytes | None = None
    """The content as JSON; `None` if it was never written."""


Measure = Callable[[Caller, str | None, str, str], Awaitable[Measured]]
"""Takes the caller, the channel (`None` for all), the id, and the user of a viewer store. Raises `BadRequest`."""


class Subject(NamedTuple):
    """The subject of a condition: the records of a kind, or a value that is not stored."""

    name: str
    """As `GET /_emulator/wait?for=` has it."""
    kind: str
    """The kind of its changes in the record; empty if it is the id."""
    parameters: frozenset[str]
    """Parameters of a query about it, besides the parameters of all conditions."""
    id: str = ""
    """The id if the query has none; empty if it must have one."""
    needs_client: bool = True
    shared: str | None = None
    """The beginning of the ids that all channels share, if they have no channel; `None` if no ids are shared."""
    is_named: bool = True
    """Whether its changes have the id as their name."""
    events: tuple[str, ...] = ()
    """The ids, if they name events, as of broadcasts; changes of other ids do not count."""
    is_stored: bool = True
    """Whether it can be counted in storage; else only the record of changes has it."""


class Kind(NamedTuple):
    """A kind of stored records, such as polls, as its feature declares it."""

    name: str
    """Of its list: `GET /_emulator/contents/<name>`."""
    about: str
    """The contents of the list, in words: `the polls, with their votes`."""
    stored_as: tuple[str, ...]
    """The kinds of the keys."""
    lifetime: int | None
    """A thing expires this long after its latest change, in ms; `None` for as long as a state store."""
    records: tuple[Stored, ...]
    """The checks of its records in a snapshot. The type of the first is the data type of a thing of this kind."""
    facts: Callable[[Any, int], Mapping[str, Any]] | None = None
    """Returns further members of a row, of a ballot, the value of a document or the note of a pool, and `now` in ms."""
    screen: str = ""
    """The screen of the dashboard that shows it, if that has another name."""
    waits_for: Subject | None = None
    """If it is stored, the part of the service that handles the feature has the method `measure`, a `Measure`."""
