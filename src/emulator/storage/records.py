"""The content of a namespace as records, equal on every engine. `Engine.dump` yields them, `load` takes them.

A dump is in this order, so two dumps of equal data are equal:

1. The types as listed in `TYPES`.
2. Records (documents, ballots, lists, pools) by key: kind, owner, name, channel, user. Rosters by group, then in its
   order.
3. Contents by the key of their group, then in the order that the data type promises. Data that operations merge across
channels (choices, entries, items) has one order for all channels: the group is the key without the channel. Members and
spent items are grouped by the key without the name.

Times are Unix ms. Only live data is dumped. `RecordChecks` checks the order of records from outside, whose values are
valid: an engine trusts those that it loads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from emulator.core.keys import Key
from emulator.storage.shapes import BallotEntry, Terms

ITEMS_PER_RECORD = 100
"""Items of a list in one record.

The last record of a list may have fewer, as may others if items are drawn during a dump.
"""


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
    entry: BallotEntry


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
    """The next items of a list, front to back; those that a pool has handed out or skipped are left out."""

    key: Key
    items: tuple[str, ...]


class PoolRecord(NamedTuple):
    """A pool. Pools of one key are numbered from 1: all but the last are dropped ones with a history."""

    key: Key
    number: int
    expires_at: int
    source: Key | None
    """The list it hands out from; `None` if it was dropped."""
    note: bytes
    """Empty if it was dropped."""


class HandedRecord(NamedTuple):
    """An item that a pool has handed out: by number of the pool, then by user, in the order of handing out."""

    pool: Key
    number: int
    user: str
    item: str


class SpentRecord(NamedTuple):
    """An item that a family of pools has handed out, however long ago: its `item_digest` in hex, in ascending order."""

    family: Key
    """The key of its pools, with an empty name."""
    digest: str


class RosterRecord(NamedTuple):
    """A roster, without its members, in the order of its group."""

    key: Key
    expires_at: int
    note: bytes


class MemberRecord(NamedTuple):
    """A member of a roster: by name of the roster, then by member."""

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

TYPES: tuple[type[Record], ...] = get_args(Record)
"""In the order of a dump."""


def type_name(shape: type[Record]) -> str:
    """Return what the records of a type are, in one word."""
    return shape.__name__.removesuffix("Record").lower()


def item_digest(item: str) -> bytes:
    """Return 16 bytes that identify an item of a list. `redis/lua/pools.lua` computes the same."""
    return hashlib.sha1(item.encode(), usedforsecurity=False).digest()[:16]


_WHOLE_TYPES: Mapping[type[Record], type[Record]] = {
    ChoiceRecord: BallotRecord,
    EntryRecord: BallotRecord,
    ListItemsRecord: ListRecord,
    MemberRecord: RosterRecord,
}
"""What the records of a type belong to. It has the same key."""
_CASTS_END = 1 << 53


class RecordChecks:
    """Checks the order of the records of one dump, and that they belong together."""

    def __init__(self) -> None:
        self._rank = 0
        self._position: tuple[Any, ...] = ()
        self._wholes: set[tuple[type[Record], Any]] = set()
        """What later records may name, by key, and for a pool also by its number. A list that a pool uses is absent."""
        self._times = 0
        """The casts so far. No choice can have more, and no engine counts beyond `_CASTS_END`."""

    def check(self, record: Record) -> None:
        """Raise `ValueError` if this record cannot follow the ones before it."""
        kind, position = type(record), sort_position(record)
        rank = TYPES.index(kind)
        if rank < self._rank:
            raise ValueError(f"a {kind.__name__} must come before every {TYPES[self._rank].__name__}")
        if rank == self._rank and position < self._position:
            raise ValueError(f"{kind.__name__}: not in order; it belongs before the previous record")
        if rank == self._rank and position == self._position and kind in _UNIQUE:
            raise ValueError(f"{kind.__name__}: repeats the previous record")
        self._rank, self._position = rank, position
        whole = _WHOLE_TYPES.get(kind, kind)
        is_known = (whole, record[0]) in self._wholes
        if whole is not kind and not is_known:
            raise ValueError(f"{kind.__name__}: there is no {type_name(whole)} with this key")
        if whole is kind and is_known:
            raise ValueError(f"{kind.__name__}: repeats an earlier record")
        if kind in _WHOLE_TYPES.values():
            self._wholes.add((kind, record[0]))
        self._check_numbers(record)

    def _check_numbers(self, record: Record) -> None:
        match record:
            case EntryRecord(_, entry):
                self._times += entry.times
                if self._times >= _CASTS_END:
                    raise ValueError(f"EntryRecord: times: the total must be below {_CASTS_END}")
            case PoolRecord(key, number, _, source):
                if number != 1 and (PoolRecord, (key, number - 1)) not in self._wholes:
                    raise ValueError("PoolRecord: number: the pools of a key are numbered from 1, without gaps")
                self._wholes.add((PoolRecord, (key, number)))
                if source is not None and (ListRecord, source) not in self._wholes:
                    raise ValueError("PoolRecord: source: there is no such list, or another pool uses it")
                self._wholes.discard((ListRecord, source))
            case HandedRecord(key, number):
                if (PoolRecord, (key, number)) not in self._wholes:
                    raise ValueError("HandedRecord: there is no pool with this key and number")


_UNIQUE = frozenset(TYPES) - {EntryRecord, ItemRecord, ListItemsRecord, HandedRecord, ChoiceRecord, RosterRecord}
"""The types whose records must have different positions."""


def sort_position(record: Record) -> tuple[Any, ...]:
    """Return the sort key of a record within its type."""
    kind, owner, name, channel, user = record[0]
    if isinstance(record, ChoiceRecord | EntryRecord | ItemRecord):
        return kind, owner, name, user
    if isinstance(record, RosterRecord):
        return kind, owner, channel, user
    if isinstance(record, MemberRecord):
        return kind, owner, channel, user, name, record.member
    if isinstance(record, SpentRecord):
        return kind, owner, channel, user, record.digest
    if isinstance(record, PoolRecord):
        return (*record.key, record.number)
    if isinstance(record, HandedRecord):
        return (*record.pool, record.number, record.user)
    return record[0]
