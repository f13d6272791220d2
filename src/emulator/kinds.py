"""The kinds of records in storage. A feature declares its own; lists, waits, snapshots and the dashboard follow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from emulator.callers import Caller
from emulator.stored import Stored


class Shape(Enum):
    """The data type in which a kind is stored."""

    BALLOTS = "ballots"
    LOGS = "logs"
    DOCUMENTS = "documents"
    POOLS = "pools"


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
    shape: Shape
    lifetime: int | None
    """A thing expires this long after its latest change, in ms; `None` for as long as a state store."""
    screen: str
    """The screen of the dashboard that shows it; empty if none does."""
    records: tuple[Stored, ...] = ()
    """The checks of its records in a snapshot."""
    facts: Callable[[Any, int], Mapping[str, Any]] | None = None
    """Returns further members of a row, of a ballot, the value of a document or the note of a pool, and `now` in ms."""
    has_secret_names: bool = False
    """Whether a row shows the start of the name, a digest, instead of all of it."""
    waits_for: Subject | None = None
    measure: Callable[[Any], Measure] | None = None
    """Returns what measures it, of an `app.Service`."""
