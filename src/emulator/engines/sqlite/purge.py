"""Housekeeping: removes expired things and reports them, in bounded steps."""

from __future__ import annotations

from emulator.engines.base import Expired, Key
from emulator.engines.sqlite.ballot_cache import BallotCache
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.lists import Lists
from emulator.engines.sqlite.namespace_ids import KEY_COLUMNS, NamespaceIds
from emulator.engines.sqlite.pool_cache import PoolCache
from emulator.engines.sqlite.rosters import SqliteRosters

STEP = 250
"""Rows removed between two returns to the event loop."""

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


class Purge:
    def __init__(
        self,
        group_commit: GroupCommit,
        namespace: NamespaceIds,
        ballot_cache: BallotCache,
        pool_cache: PoolCache,
        lists: Lists,
        rosters: SqliteRosters,
    ) -> None:
        self._group_commit = group_commit
        self._namespace = namespace
        self._ballot_cache = ballot_cache
        self._pool_cache = pool_cache
        self._lists = lists
        self._rosters = rosters

    async def __call__(self, now: int) -> list[Expired]:
        # Each write waits for its commit, and so returns to the event loop.
        expired: list[Expired] = []
        for select, delete in ((_EXPIRED, _DROP_EXPIRED), (_DOCUMENTS, _DROP_DOCUMENT)):
            while rows := await self._group_commit.write(self._purge_rows, select, delete, now):
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
