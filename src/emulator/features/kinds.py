"""The kinds of things that features keep; lists, waits, snapshots and the dashboard follow from them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from emulator.core.callers import Caller
from emulator.storage.kinds import Stored


class Measured(NamedTuple):
    """The value that a wait compares: a property of one record, or of all records of a kind in a channel."""

    counts: Mapping[str, int] = {}
    """How many, by value or key; by an empty text if there is no value."""
    content: bytes | None = None
    """The content of a store, or the newest entry of a buffer, as JSON; `None` if there is none."""


class ListedRecord(Struct):
    """A poll, ranking or buffer in a listing."""

    id: str
    channel_id: str
    """Empty for a record of no channel, such as one with a global id."""
    count: int
    latest: int
    """Unix ms of the latest vote, answer or entry; 0 if there is none."""


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
