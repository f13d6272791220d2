"""Housekeeping in bounded steps: removes and reports expired things, and deletes unreachable rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from emulator.engines.base import Expired, Key
from emulator.engines.sqlite.ballot_cache import BallotCache
from emulator.engines.sqlite.documents import SqliteDocuments
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import KEY_COLUMNS, NamespaceIds
from emulator.engines.sqlite.rewards.pool_cache import Lists, PoolCache
from emulator.engines.sqlite.rewards.rosters import SqliteRosters
from emulator.engines.sqlite.table_list import CHUNKS, ROSTERS, TABLES, Table, belonging_to

STEP = 250
"""Rows removed between two returns to the event loop."""
_CHUNK_STEP = 40
"""Fewer for chunks of lists, which are large."""
_SCAN_STEP = 500
"""Members that are scanned between two returns to the event loop; most may have to stay."""

_EXPIRED = f"SELECT rowid, {KEY_COLUMNS}, at FROM fallen WHERE space = ? AND at <= ? LIMIT {STEP}"
_DROP_EXPIRED = "DELETE FROM fallen WHERE rowid = ?"
_DOCUMENTS = f"SELECT id, {KEY_COLUMNS}, expires_at FROM documents WHERE space = ? AND expires_at <= ? LIMIT {STEP}"
_DROP_DOCUMENT = "DELETE FROM documents WHERE id = ?"
_BALLOTS = f"SELECT id, {KEY_COLUMNS}, expires_at FROM ballots WHERE space = ? AND expires_at <= ? LIMIT {STEP}"
_ITEMS = f"""
    SELECT number, log, expires_at FROM items WHERE space = ? AND expires_at <= ? ORDER BY expires_at LIMIT {STEP}
"""
_LOG = f"SELECT {KEY_COLUMNS} FROM logs WHERE id = ?"
_DROP_LOG = "DELETE FROM logs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE log = id)"
_POOLS = f"""
    SELECT id, {KEY_COLUMNS}, expires_at, list, closed FROM pools WHERE space = ? AND expires_at <= ? LIMIT {STEP}
"""
_LISTS = f"SELECT id FROM lists WHERE space = ? AND expires_at <= ? LIMIT {STEP}"
_ROSTERS = f"SELECT id, root FROM rosters WHERE space = ? AND expires_at <= ? LIMIT {STEP}"
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
"""By table of removed ids: what selects the rows that belong to one of them, and what deletes each."""
_ROWS_OF_NAMESPACE: Final = [
    (f"SELECT rowid FROM {table.name} WHERE space = ? LIMIT {STEP}", f"DELETE FROM {table.name} WHERE rowid = ?")
    for table in sorted(TABLES.values(), key=lambda table: not table.owners)  # an entry without its log is damage
    if table.in_space and not table.removed
]


@dataclass(eq=False)
class Purge:
    _group_commit: GroupCommit
    _namespace: NamespaceIds
    _ballot_cache: BallotCache
    _pool_cache: PoolCache
    _lists: Lists
    _rosters: SqliteRosters
    _documents: SqliteDocuments

    async def __call__(self, now: int) -> list[Expired]:
        # Each write waits for its commit, and so returns to the event loop.
        expired: list[Expired] = []
        for purge in (self._purge_fallen, self._purge_documents):
            while rows := await self._group_commit.write(purge, now):
                expired += rows
        while ballots := await self._group_commit.write(self._purge_ballots, now):
            expired += ballots
        while pools := await self._group_commit.write(self._purge_pools, now):
            expired += [one for one, was_dropped in pools if not was_dropped]
        for unreported in (self._purge_lists, self._purge_rosters):
            while await self._group_commit.write(unreported, now):
                pass
        newest: dict[Key, int] = {}
        while ends := await self._group_commit.write(self._purge_items, now):
            newest |= {key: max(at, newest.get(key, at)) for key, at in ends.items()}
        expired += [Expired(key, at) for key, at in newest.items()]
        return sorted(expired, key=lambda one: (one.at, one.key))

    async def tidy(self) -> None:
        """Delete unreachable rows: of removed ballots, pools, lists and rosters, and of namespaces before a reset."""
        while await self._group_commit.write(self._collect_some):
            pass

    def _purge_fallen(self, now: int) -> list[Expired]:
        return self._purge_rows(_EXPIRED, _DROP_EXPIRED, now)

    def _purge_documents(self, now: int) -> list[Expired]:
        expired = self._purge_rows(_DOCUMENTS, _DROP_DOCUMENT, now)
        for key, _ in expired:
            self._documents.purged(key)
        return expired

    def _purge_rows(self, select: str, delete: str, now: int) -> list[Expired]:
        rows = self._group_commit.connection.execute(select, (self._namespace.id, now)).fetchall()
        self._group_commit.connection.executemany(delete, [row[:1] for row in rows])
        return [Expired(Key(*row[1:6]), row[6]) for row in rows]

    def _purge_ballots(self, now: int) -> list[Expired]:
        self._ballot_cache.flush()
        rows = self._group_commit.connection.execute(_BALLOTS, (self._namespace.id, now)).fetchall()
        for id, *key, _ in rows:
            self._ballot_cache.tombstone(id, Key(*key))
        return [Expired(Key(*row[1:6]), row[6]) for row in rows]

    def _purge_pools(self, now: int) -> list[tuple[Expired, bool]]:
        rows = self._group_commit.connection.execute(_POOLS, (self._namespace.id, now)).fetchall()
        for id, *key, _, list_id, _ in rows:
            self._pool_cache.tombstone(Key(*key), id, list_id)
        return [(Expired(Key(*row[1:6]), row[6]), bool(row[8])) for row in rows]

    def _purge_lists(self, now: int) -> bool:
        rows = self._group_commit.connection.execute(_LISTS, (self._namespace.id, now)).fetchall()
        for (id,) in rows:
            self._lists.tombstone(id)
        return bool(rows)

    def _purge_rosters(self, now: int) -> bool:
        rows = self._group_commit.connection.execute(_ROSTERS, (self._namespace.id, now)).fetchall()
        for id, root in rows:
            self._rosters.tombstone(id, root)
        return bool(rows)

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
            has_owners = any(self._bury_some(table, *space) for table in TABLES.values() if table.removed)
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

    def _bury_some(self, table: Table, space: int) -> bool:
        connection = self._group_commit.connection
        rows = connection.execute(
            f"SELECT id, {table.removed_id} FROM {table.name} WHERE space = ? LIMIT {STEP}", (space,)
        ).fetchall()
        connection.executemany(f"DELETE FROM {table.name} WHERE id = ?", [row[:1] for row in rows])
        connection.executemany(table.note_removed, [row[1:] for row in rows])
        return bool(rows)
