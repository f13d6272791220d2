"""Caches pools: their position in their list, and the next items. Progress is written once per group commit.

A pool is one row of the table from its first assignment to its drop or expiry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emulator.engines.base import Key
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import BY_KEY, KEY_COLUMNS, NamespaceIds, Tables
from emulator.engines.sqlite.rewards.lists import Lists, SpentItems
from emulator.engines.sqlite.table_list import POOLS

MAX_POOLS = 256

_LOAD = f"SELECT id, root, expires_at, list, note, position, handed FROM pools WHERE {BY_KEY} AND closed = 0"
ROOT = f"SELECT root FROM pools WHERE {BY_KEY} LIMIT 1"
_CREATE = """
    INSERT INTO pools (id, root, space, shelf, owner, name, holder, place, expires_at, list, note)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ASSIGN = "UPDATE pools SET list = ?, position = ?, note = ?, expires_at = ? WHERE id = ?"
_ADVANCE = "UPDATE pools SET position = ?, handed = ? WHERE id = ?"
_CLOSE = "UPDATE pools SET closed = 1, list = 0 WHERE id = ?"
_KEY_OF = f"SELECT {KEY_COLUMNS} FROM pools WHERE id = ?"


@dataclass(slots=True, eq=False)
class CachedPool:
    id: int
    family: int
    root: int
    expires_at: int
    list_id: int
    note: bytes
    position: int = 0
    """The position of the next item in the list."""
    handed: int = 0
    """How many items it has handed out."""
    chunk_start: int = 0
    chunk: Sequence[str] = ()
    """Items of the list, from `chunk_start` on."""


class PoolCache(Tables):
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, lists: Lists, spent: SpentItems) -> None:
        super().__init__(group_commit, namespace)
        self._lists = lists
        self._spent = spent
        self._pools: dict[Key, CachedPool] = {}
        self._changed: dict[CachedPool, None] = {}

    def find(self, key: Key) -> CachedPool | None:
        """Return the pool, alive or expired, unless it was dropped. Only inside a write, since only commits evict."""
        return self._pools.get(key) or self._load(key)

    def alive(self, key: Key, now: int) -> CachedPool | None:
        pool = self.find(key)
        return pool if pool is not None and now < pool.expires_at else None

    def create(self, key: Key, list_id: int, note: bytes, expires_at: int) -> CachedPool:
        """Create a pool where there is none. It shares the history of dropped pools of the same key."""
        family = self._spent.family(key)
        params = self._namespace.params(key)
        id = self._namespace.next_number()
        row = self._group_commit.connection.execute(ROOT, params).fetchone()
        (root,) = row or (id,)
        self._group_commit.connection.execute(_CREATE, (id, root, *params, expires_at, list_id, note))
        self._pools[key] = pool = CachedPool(id, family, root, expires_at, list_id, note)
        self._group_commit.unwritten[self] = None
        return pool

    def assign(self, pool: CachedPool, list_id: int, note: bytes, expires_at: int) -> None:
        """Assign a list to the pool. If it is the same list, the pool keeps its position."""
        if list_id != pool.list_id:
            self._lists.tombstone(pool.list_id)
            pool.list_id, pool.position, pool.chunk_start, pool.chunk = list_id, 0, 0, ()
        pool.note, pool.expires_at = note, expires_at
        self._group_commit.connection.execute(_ASSIGN, (list_id, pool.position, note, expires_at, pool.id))

    def next_item(self, pool: CachedPool) -> str | None:
        at = pool.position - pool.chunk_start
        if at >= len(pool.chunk):
            pool.chunk_start, pool.chunk = self._lists.chunk(pool.list_id, pool.position)
            at = pool.position - pool.chunk_start
        return pool.chunk[at] if at < len(pool.chunk) else None

    def next_items(self, pool: CachedPool) -> Sequence[str]:
        """Return the rest of the chunk that `next_item` read."""
        return pool.chunk[pool.position - pool.chunk_start :]

    def advance(self, pool: CachedPool, count: int, *, handed: int) -> None:
        """Move past the next items, `handed` of which were handed out and the others skipped."""
        pool.position += count
        pool.handed += handed
        self._changed[pool] = None
        self._group_commit.unwritten[self] = None

    def close(self, key: Key, pool: CachedPool) -> None:
        """Drop a pool, and keep the history of what it handed out."""
        if pool.handed == 0:
            self.tombstone(key, pool.id, pool.list_id)
            return
        self._evict(key)
        self._group_commit.connection.execute(_CLOSE, (pool.id,))
        self._lists.tombstone(pool.list_id)

    def expire(self, key: Key, pool: CachedPool) -> None:
        self._namespace.note_expired(key, pool.expires_at)
        self.tombstone(key, pool.id, pool.list_id)

    def expire_id(self, id: int) -> None:
        key = Key(*self._group_commit.connection.execute(_KEY_OF, (id,)).fetchone())
        pool = self.find(key)
        assert pool is not None
        self.expire(key, pool)

    def tombstone(self, key: Key, id: int, list_id: int) -> None:
        """Remove a pool and its list; `tidy` deletes their rows. `list_id` is 0 for a dropped pool."""
        if list_id:
            self._evict(key)
            self._lists.tombstone(list_id)
        POOLS.bury(self._group_commit.connection, id)

    def flush(self) -> None:
        if self._changed:
            rows = [(pool.position, pool.handed, pool.id) for pool in self._changed]
            self._group_commit.connection.executemany(_ADVANCE, rows)
            self._changed.clear()
        if len(self._pools) > MAX_POOLS:  # not earlier, because operations of the group still use what they found
            self._pools.clear()

    def forget_read(self) -> None:
        self._pools = {key: pool for key, pool in self._pools.items() if pool in self._changed}

    def roll_back(self) -> None:
        self._pools.clear()
        self._changed.clear()

    def _evict(self, key: Key) -> None:
        pool = self._pools.pop(key, None)
        if pool is not None:
            self._changed.pop(pool, None)

    def _load(self, key: Key) -> CachedPool | None:
        row = self._group_commit.connection.execute(_LOAD, self._namespace.params(key)).fetchone()
        if row is None:
            return None
        id, *others = row
        self._pools[key] = pool = CachedPool(id, self._spent.family(key), *others)
        self._group_commit.unwritten[self] = None  # so that the next commit bounds the cache
        return pool
