"""Housekeeping in bounded steps: removes and reports expired records, and deletes unreachable rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from emulator.core.keys import Expired, Key
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import (
    BALLOTS,
    CHUNKS,
    DOCUMENTS,
    KEY,
    LISTS,
    LOGS,
    POOLS,
    ROSTERS,
    TABLES,
    Table,
)

STEP = 250
"""Rows removed between two returns to the event loop."""
_CHUNK_STEP = 40
"""Fewer for chunks of lists, which are large."""

_EXPIRING: Final = {DOCUMENTS: "1", BALLOTS: "1", POOLS: "list IS NOT NULL", LISTS: "0", ROSTERS: "0"}
"""The tables whose rows expire, and whether the end of a row is reported."""
_ITEMS: Final = f"""
    SELECT number, log, items.expires_at, {KEY} FROM items CROSS JOIN logs ON logs.id = log
    WHERE items.space = ? AND items.expires_at <= ? ORDER BY items.expires_at LIMIT {STEP}
"""
_IS_EMPTY: Final = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM items WHERE log = ?)"
_DEAD: Final = "SELECT id FROM dead WHERE owner = ? LIMIT 1"
_BURY: Final = "DELETE FROM dead WHERE owner = ? AND id = ?"


class Purge(Tables):
    async def __call__(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        # Each write waits for its commit, and so returns to the event loop.
        for table in _EXPIRING:
            while rows := await self._group_commit.write(self._purge_rows, table, now):
                yield [Expired(Key(*key), at) for _, at, is_reported, *key in rows if is_reported]
        while ends := await self._group_commit.write(self._purge_items, now):
            yield ends

    async def tidy(self) -> None:
        """Delete unreachable rows: of removed ballots, pools, lists and rosters, and of namespaces before a reset."""
        while await self._group_commit.write(self._collect_some):
            pass

    def _purge_rows(self, table: Table, now: int) -> list[tuple[Any, ...]]:
        """Remove some expired rows of a table, and return them."""
        self._group_commit.flush()
        rows = self._group_commit.connection.execute(
            f"SELECT id, expires_at, {_EXPIRING[table]}, {KEY} FROM {table.name}"
            f" WHERE space = ? AND expires_at <= ? LIMIT {STEP}",
            (self._namespace.id, now),
        ).fetchall()
        if rows:
            self._group_commit.forget_read()  # so that setting the clock back does not revive them
        for id, *_ in rows:
            table.remove(self._group_commit.connection, id)
        return rows

    def _purge_items(self, now: int) -> list[Expired]:
        connection = self._group_commit.connection
        rows = connection.execute(_ITEMS, (self._namespace.id, now)).fetchall()
        connection.executemany("DELETE FROM items WHERE number = ?", [row[:1] for row in rows])
        newest = {log: Expired(Key(*key), at) for _, log, at, *key in rows}  # the last one: rows are sorted by expiry
        for log in newest:
            if connection.execute(_IS_EMPTY, (log,)).fetchone():
                LOGS.remove(connection, log)
        return list(newest.values())

    def _collect_some(self) -> bool:
        """Delete some rows; return False if there were none."""
        self._group_commit.flush()  # removed rows may have unsaved contents
        for owner in TABLES:
            if dead := self._group_commit.connection.execute(_DEAD, (owner.name,)).fetchone():
                if not any(self._delete_some(table, *dead) for table in owner.contents):
                    self._group_commit.connection.execute(_BURY, (owner.name, *dead))
                return True
        return False

    def _delete_some(self, table: Table, owner: int) -> bool:
        """Delete some of the rows that belong to a removed one, and list them as removed if they have contents."""
        # Select, then delete by primary key: as one statement, SQLite would scan all of a ballot in every step.
        key = table.key if "," in table.key else "rowid"
        step = _CHUNK_STEP if table is CHUNKS else STEP
        connection = self._group_commit.connection
        rows = connection.execute(
            f"SELECT {key} FROM {table.name} WHERE {table.owner_id} = ? LIMIT {step}", (owner,)
        ).fetchall()
        if table.contents:
            for (id,) in rows:
                table.remove(connection, id)
        else:
            where = " AND ".join(f"{column} = ?" for column in key.split(", "))
            connection.executemany(f"DELETE FROM {table.name} WHERE {where}", rows)
        return bool(rows)
