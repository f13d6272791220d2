"""Housekeeping in bounded steps: removes and reports expired records, and deletes unreachable rows."""

from __future__ import annotations

from typing import Any, Final

from emulator.engines.shapes import Expired, Key
from emulator.engines.sqlite.ballot_cache import BallotCache
from emulator.engines.sqlite.documents import SqliteDocuments
from emulator.engines.sqlite.namespace import Namespace, Tables
from emulator.engines.sqlite.pool_cache import PoolCache
from emulator.engines.sqlite.table_list import (
    BALLOTS,
    CHUNKS,
    DOCUMENTS,
    FALLEN,
    KEY_COLUMNS,
    LISTS,
    POOLS,
    ROSTERS,
    TABLES,
    Table,
    belonging_to,
)

STEP = 250
"""Rows removed between two returns to the event loop."""
_CHUNK_STEP = 40
"""Fewer for chunks of lists, which are large."""
_SCAN_STEP = 500
"""Members that are scanned between two returns to the event loop; most may have to stay."""

_EXPIRING: Final = {
    FALLEN: "0, 1", DOCUMENTS: "0, 1", BALLOTS: "0, 1", POOLS: "list, NOT closed", LISTS: "0, 0", ROSTERS: "root, 0"
}  # fmt: skip
"""The tables whose rows expire. For each: what else the removal of a row needs, and whether its end is reported."""
_EXPIRED: Final = {
    table: f"SELECT {table.key[0]}, {KEY_COLUMNS}, {table.times[0]}, {more} FROM {table.name}"
    f" WHERE space = ? AND {table.times[0]} <= ? LIMIT {STEP}"
    for table, more in _EXPIRING.items()
}
_ITEMS = f"""
    SELECT number, log, expires_at FROM items WHERE space = ? AND expires_at <= ? ORDER BY expires_at LIMIT {STEP}
"""
_LOG = f"SELECT {KEY_COLUMNS} FROM logs WHERE id = ?"
_DROP_LOG = "DELETE FROM logs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE log = id)"
_SCAN_MEMBERS = f"""
    SELECT member, roster, NOT EXISTS (SELECT 1 FROM rosters WHERE id = members.roster) FROM members
    WHERE root = ? AND (member, roster) > (?, ?) ORDER BY member, roster LIMIT {_SCAN_STEP}
"""
_DELETE_MEMBER = "DELETE FROM members WHERE root = ? AND member = ? AND roster = ?"

# Select, then delete by primary key: as one statement, SQLite would scan all of a ballot in every step.
_BELONGING: Final = {
    owners.removed: [
        (
            f"SELECT {', '.join(table.key)} FROM {table.name} WHERE {table.owner} = ?"
            f" LIMIT {_CHUNK_STEP if table is CHUNKS else STEP}",
            f"DELETE FROM {table.name} WHERE {' AND '.join(f'{column} = ?' for column in table.key)}",
        )
        for table in belonging_to(owners)
    ]
    for owners in TABLES.values()
    if owners.removed and owners is not ROSTERS
}
"""By table of removed ids: the statement that selects the rows of an id, and the one that deletes each."""
_ROWS_OF_NAMESPACE: Final = [
    (f"SELECT rowid FROM {table.name} WHERE space = ? LIMIT {STEP}", f"DELETE FROM {table.name} WHERE rowid = ?")
    for table in sorted(TABLES.values(), key=lambda table: not table.owners)  # an entry without its log is damage
    if table.in_space and not table.removed
]


class Purge(Tables):
    def __init__(
        self, namespace: Namespace, ballot_cache: BallotCache, pool_cache: PoolCache, documents: SqliteDocuments
    ) -> None:
        super().__init__(namespace)
        self._ballot_cache, self._pool_cache, self._documents = ballot_cache, pool_cache, documents

    async def __call__(self, *, now: int) -> list[Expired]:
        # Each write waits for its commit, and so returns to the event loop.
        expired: list[Expired] = []
        for table in _EXPIRING:
            while rows := await self._group_commit.write(self._purge_rows, table, now):
                expired += [Expired(Key(*key), at) for _, *key, at, _, is_reported in rows if is_reported]
        newest: dict[Key, int] = {}
        while ends := await self._group_commit.write(self._purge_items, now):
            newest |= {key: max(at, newest.get(key, at)) for key, at in ends.items()}
        expired += [Expired(key, at) for key, at in newest.items()]
        return sorted(expired, key=lambda one: (one.at, one.key))

    async def tidy(self) -> None:
        """Delete unreachable rows: of removed ballots, pools, lists and rosters, and of namespaces before a reset."""
        while await self._group_commit.write(self._collect_some):
            pass

    def _purge_rows(self, table: Table, now: int) -> list[tuple[Any, ...]]:
        """Remove some expired rows of a table, and return them."""
        self._ballot_cache.flush()
        connection = self._group_commit.connection
        rows = connection.execute(_EXPIRED[table], (self._namespace.id, now)).fetchall()
        if not table.removed:
            connection.executemany(f"DELETE FROM {table.name} WHERE {table.key[0]} = ?", [row[:1] for row in rows])
        for id, *parts, _, other, _ in rows:
            key = Key(*parts)
            if table is DOCUMENTS:
                self._documents.purged(key)
            elif table is BALLOTS:
                self._ballot_cache.remove(id, key)
            elif table is POOLS:
                self._pool_cache.remove(key, id, other)
            elif table.removed:
                table.remove_and_list(connection, id, other or None)
        return rows

    def _purge_items(self, now: int) -> dict[Key, int]:
        connection = self._group_commit.connection
        rows = connection.execute(_ITEMS, (self._namespace.id, now)).fetchall()
        newest = {log: expires_at for _, log, expires_at in rows}  # the last one wins, and rows are sorted by expiry
        keys = {log: Key(*connection.execute(_LOG, (log,)).fetchone()) for log in newest}
        connection.executemany("DELETE FROM items WHERE number = ?", [row[:1] for row in rows])
        connection.executemany(_DROP_LOG, [(log,) for log in newest])
        return {keys[log]: at for log, at in newest.items()}

    def _collect_some(self) -> bool:
        """Delete some rows; return False if there were none."""
        self._ballot_cache.flush()  # removed ballots may have unsaved casts
        connection = self._group_commit.connection
        for dead, statements in _BELONGING.items():
            if row := connection.execute(f"SELECT rowid FROM {dead} LIMIT 1").fetchone():
                if not any(self._delete(*each, row) for each in statements):
                    connection.execute(f"DELETE FROM {dead} WHERE rowid = ?", row)
                return True
        if position := connection.execute("SELECT root, member, roster FROM dead_rosters LIMIT 1").fetchone():
            self._scan_members(*position)
            return True
        if space := connection.execute("SELECT space FROM dead_spaces LIMIT 1").fetchone():
            has_owners = any(self._remove_some(table, *space) for table in TABLES.values() if table.removed)
            if not has_owners and not any(self._delete(*each, space) for each in _ROWS_OF_NAMESPACE):
                connection.execute("DELETE FROM dead_spaces WHERE space = ?", space)
            return True
        return False

    def _delete(self, select: str, delete: str, owner: tuple[int]) -> bool:
        rows = self._group_commit.connection.execute(select, owner).fetchall()
        self._group_commit.connection.executemany(delete, rows)
        return bool(rows)

    def _scan_members(self, root: int, member: str, roster: int) -> None:
        """Scan members from this position on, and delete those whose roster was removed."""
        connection = self._group_commit.connection
        rows = connection.execute(_SCAN_MEMBERS, (root, member, roster)).fetchall()
        connection.executemany(
            _DELETE_MEMBER, [(root, member, roster) for member, roster, is_removed in rows if is_removed]
        )
        if len(rows) < _SCAN_STEP:
            connection.execute("DELETE FROM dead_rosters WHERE root = ?", (root,))
        else:
            connection.execute(
                "UPDATE dead_rosters SET (member, roster) = (?, ?) WHERE root = ?", (*rows[-1][:2], root)
            )

    def _remove_some(self, table: Table, space: int) -> bool:
        connection = self._group_commit.connection
        rows = connection.execute(
            f"SELECT id, {table.removed_id} FROM {table.name} WHERE space = ? LIMIT {STEP}", (space,)
        ).fetchall()
        connection.executemany(f"DELETE FROM {table.name} WHERE id = ?", [row[:1] for row in rows])
        connection.executemany(table.list_removed, [row[1:] for row in rows])
        return bool(rows)
