"""Reads everything in a namespace as records (`storage/records.py`), in a snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.merging import Row
from emulator.storage.records import ITEMS_PER_RECORD, Record
from emulator.storage.shapes import BallotEntry, Terms
from emulator.storage.sqlite.namespace import Tables, namespace_id
from emulator.storage.sqlite.tables import KEY, TERMS, qualified_key

_IS_ALIVE = "space = :space AND +expires_at > :now"
# An index has this order, so SQLite sorts the contents of one group at a time: to sort all at once would copy them.
_GROUP_COLUMNS = "kind, owner, name, user"
_NUMBERED_POOLS = f"""
    (SELECT *, row_number() OVER (PARTITION BY {KEY} ORDER BY id) AS number FROM pools WHERE {_IS_ALIVE})
"""
_SELECT_RECORDS: dict[type[Record], str] = {
    types.DocumentRecord: f"SELECT {KEY}, expires_at, value FROM documents WHERE {_IS_ALIVE} ORDER BY {KEY}",
    types.BallotRecord: f"SELECT {KEY}, expires_at, definition, {TERMS} FROM ballots WHERE {_IS_ALIVE} ORDER BY {KEY}",
    types.ChoiceRecord: f"""
        SELECT {KEY}, choice FROM ballots CROSS JOIN tallies ON tallies.ballot = ballots.id
        WHERE {_IS_ALIVE} ORDER BY {_GROUP_COLUMNS}, since
    """,
    types.EntryRecord: f"""
        SELECT {KEY}, voter, choice, times, cast_at, note
        FROM ballots CROSS JOIN entries INDEXED BY entries_by_age ON entries.ballot = ballots.id
        WHERE {_IS_ALIVE} ORDER BY {_GROUP_COLUMNS}, number
    """,
    types.ItemRecord: f"""
        SELECT {KEY}, at, expires_at, value FROM logs CROSS JOIN items INDEXED BY items_by_age ON items.log = logs.id
        WHERE logs.space = :space AND +expires_at > :now ORDER BY {_GROUP_COLUMNS}, items.number
    """,
    types.ListRecord: f"SELECT {KEY}, expires_at FROM lists WHERE {_IS_ALIVE} ORDER BY {KEY}",
    types.ListItemsRecord: f"""
        SELECT {KEY}, id, coalesce((SELECT position FROM pools WHERE list = lists.id), 0)
        FROM lists WHERE {_IS_ALIVE} ORDER BY {KEY}
    """,
    types.PoolRecord: f"""
        SELECT {qualified_key("numbered")}, number, numbered.expires_at, note, {qualified_key("lists")}
        FROM {_NUMBERED_POOLS} AS numbered LEFT JOIN lists ON lists.id = list ORDER BY 1, 2, 3, 4, 5, 6
    """,
    types.HandedRecord: f"""
        SELECT {qualified_key("numbered")}, number, handed.user, item
        FROM {_NUMBERED_POOLS} AS numbered CROSS JOIN handed ON pool = id ORDER BY 1, 2, 3, 4, 5, 6, 7, ordinal
    """,
    types.SpentRecord: """
        SELECT kind, owner, '', channel, user, lower(hex(digest)) FROM families CROSS JOIN spent ON family = families.id
        WHERE space = :space ORDER BY kind, owner, channel, user, digest
    """,
    types.RosterRecord: f"""
        SELECT {KEY}, expires_at, note FROM rosters WHERE {_IS_ALIVE} ORDER BY kind, owner, channel, user, number
    """,
    types.MemberRecord: f"""
        SELECT {KEY}, member FROM rosters CROSS JOIN members ON roster = id
        WHERE {_IS_ALIVE} ORDER BY kind, owner, channel, user, name, member
    """,
}
"""The rows of each type of record, in the order of a dump: the columns of the key, then the fields of the record."""
_SELECT_CHUNKS = "SELECT end, items FROM chunks WHERE list = ? AND end > ? ORDER BY end"


class SqliteDump(Tables):
    """The part of an engine that reads everything as records."""

    async def dump(self, *, now: int) -> AsyncIterator[Sequence[Record]]:
        async for page in self.group_commit.snapshot(partial(_read_records, self._namespace.name, now)):
            yield page


def _read_records(namespace: str, now: int, connection: sqlite3.Connection) -> Generator[Record, None, None]:
    """Read all records of one namespace from one connection."""
    params = {"space": namespace_id(connection, namespace), "now": now}
    for kind in types.TYPES:
        for row in connection.execute(_SELECT_RECORDS[kind], params):
            yield from _records_of_row(connection, kind, Key(*row[:5]), row[5:])


def _records_of_row(connection: sqlite3.Connection, kind: type[Any], key: Key, row: Row) -> Iterator[Record]:
    if kind is types.BallotRecord:
        expires_at, definition, *terms = row
        yield types.BallotRecord(key, expires_at, definition, msgspec.convert(terms, Terms, strict=False))
    elif kind is types.EntryRecord:
        yield types.EntryRecord(key, BallotEntry(*row))
    elif kind is types.PoolRecord:
        number, expires_at, note, *source = row
        yield types.PoolRecord(key, number, expires_at, None if source[0] is None else Key(*source), note)
    elif kind is types.ListItemsRecord:
        items = _read_items(connection, *row)
        while some := tuple(islice(items, ITEMS_PER_RECORD)):
            yield types.ListItemsRecord(key, some)
    else:
        yield kind(key, *row)


def _read_items(connection: sqlite3.Connection, list_id: int, position: int) -> Iterator[str]:
    """The items of a list from this position on."""
    for end, packed in connection.execute(_SELECT_CHUNKS, (list_id, position)):
        yield from packed.decode().split("\0")[position - end :]
