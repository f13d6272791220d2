"""Housekeeping in bounded steps: removes and reports expired records, and deletes unreachable rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from emulator.core.keys import Expired, Key
from emulator.storage.sqlite.ballot_cache import BallotCache
from emulator.storage.sqlite.documents import SqliteDocuments
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.pool_cache import PoolCache
from emulator.storage.sqlite.table_list import (
    BALLOTS,
    CHUNKS,
    DOCUMENTS,
    KEY_COLUMNS,
    LIST_REMOVED,
    LISTS,
    POOLS,
    ROSTERS,
    SPACES,
    TABLES,
    Table,
    belonging_to,
)

STEP = 250
"""Rows removed between two returns to the event loop."""
_CHUNK_STEP = 40
"""Fewer for chunks of lists, which are large."""

_EXPIRING: Final = {
    DOCUMENTS: "0, 1", BALLOTS: "0, 1", POOLS: "list, NOT closed", LISTS: "0, 0", ROSTERS: "0, 0"
}  # fmt: skip
"""The tables whose rows expire. For each: what else the removal of a row needs, and whether its end is reported."""
_EXPIRED: Final = {
    table: f"SELECT id, {KEY_COLUMNS}, expires_at, {more} FROM {table.name}"
    f" WHERE space = ? AND expires_at <= ? LIMIT {STEP}"
    for table, more in _EXPIRING.items()
}
_ITEMS = f"""
    SELECT number, log, expires_at FROM items WHERE space = ? AND expires_at <= ? ORDER BY expires_at LIMIT {STEP}
"""
_LOG = f"SELECT {KEY_COLUMNS} FROM logs WHERE id = ?"
_DROP_LOG = "DELETE FROM logs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE log = id)"

# Select, then delete by primary key: as one statement, SQLite would scan all of a ballot in every step.
_BELONGING: Final = {
    owners: [
        (
            f"SELECT {', '.join(table.key)} FROM {table.name} WHERE {table.owner} = ?"
            f" LIMIT {_CHUNK_STEP if table is CHUNKS else STEP}",
            f"DELETE FROM {table.name} WHERE {' AND '.join(f'{column} = ?' for column in table.key)}",
        )
        for table in belonging_to(owners)
    ]
    for owners in TABLES.values()
    if owners.is_tidied
}
"""By table: the statement that selects what belongs to a removed row, and the one that deletes each."""
_DEAD: Final = "SELECT id FROM dead WHERE owners = ? LIMIT 1"
_BURY: Final = "DELETE FROM dead WHERE owners = ? AND id = ?"
_ROWS_OF_NAMESPACE: Final = [
    (f"SELECT rowid FROM {table.name} WHERE space = ? LIMIT {STEP}", f"DELETE FROM {table.name} WHERE rowid = ?")
    for table in TABLES.values()
    if table.in_space and not table.is_tidied
]


class Purge(Tables):
    def __init__(
        self, namespace: Namespace, ballot_cache: BallotCache, pool_cache: PoolCache, documents: SqliteDocuments
    ) -> None:
        super().__init__(namespace)
        self._ballot_cache, self._pool_cache, self._documents = ballot_cache, pool_cache, documents

    async def __call__(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        # Each write waits for its commit, and so returns to the event loop.
        for table in _EXPIRING:
            while rows := await self._group_commit.write(self._purge_rows, table, now):
                yield [Expired(Key(*key), at) for _, *key, at, _, is_reported in rows if is_reported]
        while ends := await self._group_commit.write(self._purge_items, now):
            yield ends

    async def tidy(self) -> None:
        """Delete unreachable rows: of removed ballots, pools, lists and rosters, and of namespaces before a reset."""
        while await self._group_commit.write(self._collect_some):
            pass

    def _purge_rows(self, table: Table, now: int) -> list[tuple[Any, ...]]:
        """Remove some expired rows of a table, and return them."""
        self._ballot_cache.flush()
        connection = self._group_commit.connection
        rows = connection.execute(_EXPIRED[table], (self._namespace.id, now)).fetchall()
        for id, *parts, _, other, _ in rows:
            key = Key(*parts)
            if table is BALLOTS:
                self._ballot_cache.remove(id, key)
            elif table is POOLS:
                self._pool_cache.remove(key, id, other)
            else:
                table.remove(connection, id)
            if table is DOCUMENTS:
                self._documents.purged(key)
        return rows

    def _purge_items(self, now: int) -> list[Expired]:
        connection = self._group_commit.connection
        rows = connection.execute(_ITEMS, (self._namespace.id, now)).fetchall()
        newest = {log: expires_at for _, log, expires_at in rows}  # the last one wins, and rows are sorted by expiry
        keys = {log: Key(*connection.execute(_LOG, (log,)).fetchone()) for log in newest}
        connection.executemany("DELETE FROM items WHERE number = ?", [row[:1] for row in rows])
        connection.executemany(_DROP_LOG, [(log,) for log in newest])
        return [Expired(keys[log], at) for log, at in newest.items()]

    def _collect_some(self) -> bool:
        """Delete some rows; return False if there were none."""
        self._ballot_cache.flush()  # removed ballots may have unsaved casts
        connection = self._group_commit.connection
        for owners, statements in _BELONGING.items():
            if row := connection.execute(_DEAD, (owners.name,)).fetchone():
                if not any(self._delete(*each, row) for each in statements):
                    connection.execute(_BURY, (owners.name, *row))
                return True
        if space := connection.execute(_DEAD, (SPACES.name,)).fetchone():
            has_owners = any(self._remove_some(table, *space) for table in _BELONGING)
            if not has_owners and not any(self._delete(*each, space) for each in _ROWS_OF_NAMESPACE):
                connection.execute(_BURY, (SPACES.name, *space))
            return True
        return False

    def _delete(self, select: str, delete: str, owner: tuple[int]) -> bool:
        rows = self._group_commit.connection.execute(select, owner).fetchall()
        self._group_commit.connection.executemany(delete, rows)
        return bool(rows)

    def _remove_some(self, table: Table, space: int) -> bool:
        connection = self._group_commit.connection
        rows = connection.execute(f"SELECT id FROM {table.name} WHERE space = ? LIMIT {STEP}", (space,)).fetchall()
        connection.executemany(f"DELETE FROM {table.name} WHERE id = ?", rows)
        connection.executemany(LIST_REMOVED, [(table.name, *row) for row in rows])
        return bool(rows)
