"""Removes what is under the keys of records, before the records are written there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from emulator.engines.records import (
    BallotRecord,
    DocumentRecord,
    ItemRecord,
    ListRecord,
    PoolRecord,
    Record,
    RosterRecord,
)
from emulator.engines.sqlite.namespace_ids import BY_KEY
from emulator.engines.sqlite.table_list import BALLOTS, LISTS, POOLS, ROSTERS


def clear(connection: sqlite3.Connection, space: int, records: Sequence[Record]) -> None:
    """Remove everything under the keys of these records. A pool goes with its list. `tidy` deletes the contents."""
    for record_type, key in dict.fromkeys((type(record), record[0]) for record in records):
        if record_type in _STORED_IN:
            columns, table, remove = _STORED_IN[record_type]
            params = (space, key.kind, key.owner, key.name, key.user, key.channel)
            for row in connection.execute(f"SELECT {columns} FROM {table} WHERE {BY_KEY}", params).fetchall():
                remove(connection, *row)


def _remove_document(connection: sqlite3.Connection, id: int) -> None:
    connection.execute("DELETE FROM documents WHERE id = ?", (id,))


def _remove_log(connection: sqlite3.Connection, id: int) -> None:
    connection.execute("DELETE FROM items WHERE log = ?", (id,))
    connection.execute("DELETE FROM logs WHERE id = ?", (id,))


def _remove_list(connection: sqlite3.Connection, id: int, pool: int | None) -> None:
    if pool:
        POOLS.bury(connection, pool)
    LISTS.bury(connection, id)


def _remove_pool(connection: sqlite3.Connection, id: int, list_id: int) -> None:
    POOLS.bury(connection, id)
    if list_id:
        LISTS.bury(connection, list_id)


_STORED_IN: Final[Mapping[type[Record], tuple[str, str, Callable[..., None]]]] = {
    DocumentRecord: ("id", "documents", _remove_document),
    BallotRecord: ("id", "ballots", BALLOTS.bury),
    ItemRecord: ("id", "logs", _remove_log),
    ListRecord: ("id, pool", "lists", _remove_list),
    PoolRecord: ("id, list", "pools", _remove_pool),
    RosterRecord: ("id, root", "rosters", ROSTERS.bury),
}
"""The columns and the table of each type, and what removes a row. Other types are the contents of these."""
