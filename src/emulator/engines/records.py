"""The content of a namespace as records, equal on every engine. `Engine.dump` yields them, `load` takes them.

A dump is in this order, so two dumps of equal data are equal:

1. The types as listed in `TYPES`.
2. Things (documents, ballots, lists, pools, rosters) by key: kind, owner, name, channel, user.
3. Contents by the key of their group, then in the order that the shape promises. What operations merge across channels
   (choices, entries, items) has one order for all channels: the group is the key without the channel. Members and spent
   items are grouped by the key without the name.

Times are Unix ms. Only what is alive is dumped. `record_checks.py` checks the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple, get_args

from emulator.engines.base import Entry, Key, Terms

ITEMS_PER_RECORD: Final = 100
"""Items of a list in one record. The last record of a list may have fewer, as may others if items are drawn during a
dump."""


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
    """Whether the note alone describes the cast (`CastRequest.whole`)."""


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
    """An item that a family of pools has handed out, however long ago: its `digest_of` in hex, in ascending order."""

    family: Key
    """The key of its pools, with an empty name."""
    digest: str


class RosterRecord(NamedTuple):
    """A roster, without its members."""

    key: Key
    expires_at: int


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

TYPES: Final[tuple[type[Record], ...]] = get_args(Record)
"""In the order of a dump."""
RANK: Final[Mapping[type[Record], int]] = {each: rank for rank, each in enumerate(TYPES)}
"""The place of each type in a dump."""


def digest_of(item: str) -> bytes:
    """Return 16 bytes that identify an item of a list."""
    return hashlib.blake2b(item.encode(), digest_size=16).digest()
