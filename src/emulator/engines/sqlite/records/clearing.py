"""Removes what is under the keys of records, before the records are written there."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from emulator.engines.base import Key
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
    execute = connection.execute

    def find(columns: str, table: str, key: Key) -> list[tuple[int, ...]]:
        params = (space, key.kind, key.owner, key.name, key.user, key.channel)
        return execute(f"SELECT {columns} FROM {table} WHERE {BY_KEY}", params).fetchall()

    def bury(table: str, id: int, dead: str) -> None:
        execute(f"DELETE FROM {table} WHERE id = ?", (id,))
        execute(f"INSERT OR IGNORE INTO {dead} VALUES (?)", (id,))

    def bury_pool(id: int, list_id: int) -> None:
        bury("pools", id, "dead_pools")
        if list_id:
            bury("lists", list_id, "dead_lists")

    for kind, key in dict.fromkeys((type(record), record[0]) for record in records):
        if kind is DocumentRecord:
            for (id,) in find("id", "documents", key):
                execute("DELETE FROM documents WHERE id = ?", (id,))
        elif kind is BallotRecord:
            for (id,) in find("id", "ballots", key):
                bury("ballots", id, "dead")
        elif kind is ItemRecord:
            for (id,) in find("id", "logs", key):
                execute("DELETE FROM items WHERE log = ?", (id,))
                execute("DELETE FROM logs WHERE id = ?", (id,))
        elif kind is ListRecord:
            for id, pool in find("id, pool", "lists", key):
                bury_pool(pool or 0, id)
        elif kind is PoolRecord:
            for id, list_id in find("id, list", "pools", key):
                bury_pool(id, list_id)
        elif kind is RosterRecord:
            for id, root in find("id, root", "rosters", key):
                execute("DELETE FROM rosters WHERE id = ?", (id,))
                execute("INSERT OR REPLACE INTO dead_rosters (root) VALUES (?)", (root,))
