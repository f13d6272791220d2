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


def _remove_ballot(connection: sqlite3.Connection, id: int) -> None:
    _bury(connection, "ballots", id, "dead")


def _remove_log(connection: sqlite3.Connection, id: int) -> None:
    connection.execute("DELETE FROM items WHERE log = ?", (id,))
    connection.execute("DELETE FROM logs WHERE id = ?", (id,))


def _remove_list(connection: sqlite3.Connection, id: int, pool: int | None) -> None:
    if pool:
        _bury(connection, "pools", pool, "dead_pools")
    _bury(connection, "lists", id, "dead_lists")


def _remove_pool(connection: sqlite3.Connection, id: int, list_id: int) -> None:
    _bury(connection, "pools", id, "dead_pools")
    if list_id:
        _bury(connection, "lists", list_id, "dead_lists")


def _remove_roster(connection: sqlite3.Connection, id: int, root: int) -> None:
    connection.execute("DELETE FROM rosters WHERE id = ?", (id,))
    connection.execute("INSERT OR REPLACE INTO dead_rosters (root) VALUES (?)", (root,))


def _bury(connection: sqlite3.Connection, table: str, id: int, dead: str) -> None:
    """Delete a row, and have `tidy` delete its contents."""
    connection.execute(f"DELETE FROM {table} WHERE id = ?", (id,))
    connection.execute(f"INSERT OR IGNORE INTO {dead} VALUES (?)", (id,))


_STORED_IN: Final[Mapping[type[Record], tuple[str, str, Callable[..., None]]]] = {
    DocumentRecord: ("id", "documents", _remove_document),
    BallotRecord: ("id", "ballots", _remove_ballot),
    ItemRecord: ("id", "logs", _remove_log),
    ListRecord: ("id, pool", "lists", _remove_list),
    PoolRecord: ("id, list", "pools", _remove_pool),
    RosterRecord: ("id, root", "rosters", _remove_roster),
}
"""The columns and the table of each type, and what removes a row. Other types are the contents of these."""
