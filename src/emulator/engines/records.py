"""What a namespace holds, as records that are equal on every engine. `Engine.dump` yields them, `load` takes them.

A dump is in this order: the types as listed here; within a type, by key; under one key, in the order that the shape
promises (casts in order of casting, entries in order of arrival, items front to back). So two dumps of equal data are
equal. Times are Unix ms. Only what is alive is dumped.
"""

from __future__ import annotations

from typing import NamedTuple

from emulator.engines.base import Entry, Key, Terms


class DocumentRecord(NamedTuple):
    """A document."""

    key: Key
    expires_at: int
    value: bytes


class BallotRecord(NamedTuple):
    """A ballot, without its casts."""

    key: Key
    expires_at: int
    definition: bytes | None
    terms: Terms


class ChoiceRecord(NamedTuple):
    """A choice that has casts, in the order in which `Tally` breaks ties."""

    ballot: Key
    choice: str


class EntryRecord(NamedTuple):
    """One voter's casts for one choice, in the order of casting."""

    ballot: Key
    entry: Entry
    whole: bool


class ItemRecord(NamedTuple):
    """An entry of a log, in the order of arrival."""

    log: Key
    at: int
    expires_at: int
    value: bytes


class ListRecord(NamedTuple):
    """A list of items, used by a pool or not yet."""

    key: Key
    expires_at: int


class ListItemsRecord(NamedTuple):
    """Consecutive items of a list."""

    key: Key
    items: tuple[str, ...]


class PoolRecord(NamedTuple):
    """A pool. Pools of one key are numbered from 1: all but the last are dropped ones with a history."""

    key: Key
    number: int
    closed: bool
    expires_at: int
    source: Key | None
    """The list it hands out from; `None` if closed."""
    position: int
    """How many items at the front of the list are handed out or skipped."""
    note: bytes


class HandedRecord(NamedTuple):
    """An item that a pool has handed out, in the order of handing out."""

    pool: Key
    number: int
    user: str
    item: str


class SpentRecord(NamedTuple):
    """An item that a family of pools has handed out, however long ago, as the digest of the item in hex."""

    family: Key
    digest: str


class RosterRecord(NamedTuple):
    """A roster, without its members."""

    key: Key
    expires_at: int


class MemberRecord(NamedTuple):
    """A member of a roster."""

    roster: Key
    member: str


Record = (
    DocumentRecord
    | BallotRecord
    | ChoiceRecord
    | EntryRecord
    | ItemRecord
    | ListRecord
    | ListItemsRecord
    | PoolRecord
    | HandedRecord
    | SpentRecord
    | RosterRecord
    | MemberRecord
)
