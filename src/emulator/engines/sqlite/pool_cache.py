"""Pools from a supply where there was none to their drop or end: what is known of each as a whole.

The pools in use are held in memory between turns, with the items that come next, and how far each has come is written
once per turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Key
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.lists import Lists
from emulator.engines.sqlite.namespace_ids import KEY, KEY_COLUMNS, NamespaceIds

MOST_HELD = 256

_LOAD = f"SELECT id, root, expires_at, list, position, handed FROM pools WHERE {KEY} AND closed = 0"
_ROOT = f"SELECT root FROM pools WHERE {KEY} LIMIT 1"
_CREATE = """
    INSERT INTO pools (id, root, space, shelf, owner, name, holder, place, expires_at, list, note)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SUPPLY = "UPDATE pools SET list = ?, position = ?, note = ?, expires_at = ? WHERE id = ?"
_MOVE = "UPDATE pools SET position = ?, handed = ? WHERE id = ?"
_CLOSE = "UPDATE pools SET closed = 1, list = 0 WHERE id = ?"
_KEY_OF = f"SELECT {KEY_COLUMNS} FROM pools WHERE id = ?"


class CachedPool:
    __slots__ = ("chunk", "expires_at", "first", "handed", "id", "position", "root", "source")

    def __init__(self, id: int, root: int, expires_at: int, source: int, position: int = 0, handed: int = 0) -> None:
        self.id = id
        self.root = root
        self.expires_at = expires_at
        self.source = source
        """The number of its list."""
        self.position = position
        """The place of the next item in the list."""
        self.handed = handed
        """How many items it has handed out."""
        self.first = 0
        self.chunk: Sequence[str] = ()
        """Some items of the list; the first of them stands at `first`."""


class PoolCache:
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, lists: Lists) -> None:
        self._group_commit = group_commit
        self._namespace = namespace
        self._lists = lists
        self._held: dict[Key, CachedPool] = {}
        self._changed: set[CachedPool] = set()

    def find(self, key: Key) -> CachedPool | None:
        """The pool, dead or alive, unless it was dropped; only inside a write, which is what lets go of it again."""
        return self._held.get(key) or self._loaded(key)

    def alive(self, key: Key, now: int) -> CachedPool | None:
        found = self.find(key)
        return found if found is not None and now < found.expires_at else None

    def fresh(self, key: Key, source: int, note: bytes, expires_at: int) -> CachedPool:
        """A new pool under a key where there is none; what dropped ones handed out is remembered beside it."""
        place = self._namespace.of(key)
        id = self._namespace.number()
        row = self._group_commit.connection.execute(_ROOT, place).fetchone()
        (root,) = row or (id,)
        self._group_commit.connection.execute(_CREATE, (id, root, *place, expires_at, source, note))
        self._held[key] = generation = CachedPool(id, root, expires_at, source)
        return generation

    def assign(self, pool: CachedPool, source: int, note: bytes, expires_at: int) -> None:
        """Have the pool hand out from this list; from the one it has, it goes on where it is."""
        if source != pool.source:
            self._lists.tombstone(pool.source)
            pool.source, pool.position, pool.first, pool.chunk = source, 0, 0, ()
        pool.expires_at = expires_at
        self._group_commit.connection.execute(_SUPPLY, (source, pool.position, note, expires_at, pool.id))

    def item(self, pool: CachedPool) -> str | None:
        """The next item of its list."""
        at = pool.position - pool.first
        if at >= len(pool.chunk):
            pool.first, pool.chunk = self._lists.chunk(pool.source, pool.position)
            at = pool.position - pool.first
        return pool.chunk[at] if at < len(pool.chunk) else None

    def step(self, pool: CachedPool, *, handed: int) -> None:
        """Leave the next item behind."""
        pool.position += 1
        pool.handed += handed
        self._changed.add(pool)

    def close(self, key: Key, pool: CachedPool) -> None:
        """Have the pool hand out nothing more, and remember what it has handed out."""
        if pool.handed == 0:
            self.tombstone(key, pool.id, pool.source)
            return
        self._let_go(key)
        self._group_commit.connection.execute(_CLOSE, (pool.id,))
        self._lists.tombstone(pool.source)

    def end(self, key: Key, pool: CachedPool) -> None:
        """Take a pool away that is past its end."""
        self._namespace.expired(key, pool.expires_at)
        self.tombstone(key, pool.id, pool.source)

    def end_user(self, pool: int) -> None:
        """Take the pool with this number away, which is past its end, and with it its list."""
        key = Key(*self._group_commit.connection.execute(_KEY_OF, (pool,)).fetchone())
        found = self.find(key)
        assert found is not None
        self.end(key, found)

    def tombstone(self, key: Key, id: int, source: int) -> None:
        """Put a pool and its list out of reach, and leave their rows to `purge`; `source` is 0 for a dropped pool."""
        if source:
            self._let_go(key)
            self._lists.tombstone(source)
        self._group_commit.connection.execute("DELETE FROM pools WHERE id = ?", (id,))
        self._group_commit.connection.execute("INSERT INTO dead_pools VALUES (?)", (id,))

    def flush(self) -> None:
        if self._changed:
            moved = [(pool.position, pool.handed, pool.id) for pool in self._changed]
            self._group_commit.connection.executemany(_MOVE, moved)
            self._changed.clear()
        if len(self._held) > MOST_HELD:  # only now, as operations of the turn go on with what they found
            self._held.clear()

    def forget(self) -> None:
        self._held.clear()
        self._changed.clear()

    def _let_go(self, key: Key) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._changed.discard(held)

    def _loaded(self, key: Key) -> CachedPool | None:
        row = self._group_commit.connection.execute(_LOAD, self._namespace.of(key)).fetchone()
        if row is None:
            return None
        self._held[key] = generation = CachedPool(*row)
        return generation
