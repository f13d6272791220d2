"""The lists that pools hand out from, the items that each family has handed out, and a cache of pools.

A list is rows of many items each, which never change. Of a handed-out item, a digest stays until a reset. A pool is one
row of the table from its first assignment to its drop or expiry. Its position in its list and the next items are
cached; its progress is written once per group commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from emulator.core.keys import Key
from emulator.storage.records import digest_of
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.table_list import BY_KEY, CHUNKS, FAMILIES, KEY_COLUMNS, LISTS, POOLS, SPENT

CHUNK_SIZE = 128
"""Items in one row. Few, because a process that draws alternately with another one reads the same row repeatedly."""

_FIND = f"SELECT id, pool, size, expires_at FROM lists WHERE {BY_KEY}"
_GROW = "UPDATE lists SET size = ?, expires_at = ? WHERE id = ?"
USE_LIST = "UPDATE lists SET pool = ?, expires_at = ? WHERE id = ?"
_CHUNK = "SELECT first, items FROM chunks WHERE list = ? AND first <= ? ORDER BY first DESC LIMIT 1"
_CHUNKS = """
    SELECT first, items FROM chunks
    WHERE list = :list AND first >= (SELECT max(first) FROM chunks WHERE list = :list AND first <= :at)
    ORDER BY first LIMIT 16
"""
_FAMILY = "SELECT id FROM families WHERE space = ? AND shelf = ? AND owner = ? AND holder = ? AND place = ?"
_IS_SPENT = "SELECT 1 FROM spent WHERE family = ? AND digest = ?"
_SPENT_AMONG = "SELECT digest FROM spent WHERE family = ? AND digest IN ({})"
SPEND = f"{SPENT.insert} ON CONFLICT DO NOTHING"


class ListRow(NamedTuple):
    id: int
    pool: int | None
    """The pool that uses the list; they expire together."""
    size: int
    expires_at: int


class Lists(Tables):
    def find(self, source: Key) -> ListRow | None:
        """Return the list with this key, alive or expired; `None` if there is none."""
        row = self._group_commit.connection.execute(_FIND, self._namespace.params(source)).fetchone()
        return None if row is None else ListRow(*row)

    def create(self, source: Key, expires_at: int) -> ListRow:
        """Create an empty list under a key that has none."""
        id = self._namespace.next_number()
        self._group_commit.connection.execute(LISTS.insert, (id, *self._namespace.params(source), expires_at))
        return ListRow(id, None, 0, expires_at)

    def append(self, to: ListRow, chunks: Sequence[tuple[int, bytes]], expires_at: int) -> None:
        """Append the chunks that `chunks_of` returned, and keep the list alive until at least `expires_at`."""
        size, rows = to.size, []
        for count, items in chunks:
            rows.append((to.id, size, items))
            size += count
        self._group_commit.connection.executemany(CHUNKS.insert, rows)
        self._group_commit.connection.execute(_GROW, (size, max(expires_at, to.expires_at), to.id))

    def assign(self, id: int, pool: int, expires_at: int) -> None:
        self._group_commit.connection.execute(USE_LIST, (pool, expires_at, id))

    def chunk(self, id: int, position: int) -> tuple[int, list[str]]:
        """Return the chunk with `position`, or the last: the position of its first item, and its items."""
        row = self._group_commit.connection.execute(_CHUNK, (id, position)).fetchone()
        return (0, []) if row is None else (row[0], row[1].decode().split("\0"))

    def items(self, id: int, at: int) -> list[str]:
        """Return the items of some chunks, from position `at` of the list on."""
        rows = self._group_commit.connection.execute(_CHUNKS, {"list": id, "at": at}).fetchall()
        items = [item for _, packed in rows for item in packed.decode().split("\0")]
        return items[at - rows[0][0] :] if rows else []

    def remove(self, id: int) -> None:
        """Remove the list; `tidy` deletes its items."""
        LISTS.remove(self._group_commit.connection, id)


class SpentItems(Tables):
    def family(self, key: Key, *, space: int | None = None) -> int:
        """Return the id of the family of a pool, and create the family if needed. Only inside a write.

        `space` is the id of the namespace; by default, the present one.
        """
        params = (space or self._namespace.id, key.kind, key.owner, key.user, key.channel)
        found = self._group_commit.connection.execute(_FAMILY, params).fetchone()
        family = int(found[0]) if found else self._namespace.next_number()
        if not found:
            self._group_commit.connection.execute(FAMILIES.insert, (family, *params))
        return family

    def is_unspent(self, family: int, item: str) -> bool:
        return self._group_commit.connection.execute(_IS_SPENT, (family, digest_of(item))).fetchone() is None

    def count_spent_at_front(self, family: int, items: Sequence[str]) -> int:
        """Return how many items at the front of a chunk of a list are spent."""
        digests = list(map(digest_of, items))
        among = _SPENT_AMONG.format(", ".join("?" * len(digests)))
        spent = {digest for (digest,) in self._group_commit.connection.execute(among, (family, *digests))}
        return next((at for at, digest in enumerate(digests) if digest not in spent), len(digests))

    def spend(self, family: int, item: str) -> bool:
        """Note an item as spent; return whether it was not before."""
        return self._group_commit.connection.execute(SPEND, (family, digest_of(item))).rowcount == 1


def chunks_of(items: Sequence[str]) -> list[tuple[int, bytes]]:
    """Return chunks: the number of items, and the items separated by NUL. Raises `ValueError` for NUL in an item."""
    chunks = []
    for start in range(0, len(items), CHUNK_SIZE):
        some = items[start : start + CHUNK_SIZE]
        text = "\0".join(some)
        if text.count("\0") >= len(some):
            raise ValueError("an item must not contain NUL")
        chunks.append((len(some), text.encode()))
    return chunks


MAX_POOLS = 256

_LOAD = f"SELECT id, root, expires_at, list, note, position, handed FROM pools WHERE {BY_KEY} AND closed = 0"
ROOT_OF_POOLS = f"SELECT root FROM pools WHERE {BY_KEY} LIMIT 1"
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
    def __init__(self, namespace: Namespace, lists: Lists, spent: SpentItems) -> None:
        super().__init__(namespace)
        self._lists = lists
        self._spent = spent
        self._pools: dict[Key, CachedPool] = {}
        self._changed: dict[CachedPool, None] = {}

    def find(self, key: Key) -> CachedPool | None:
        """Return the pool, alive or expired, unless it was dropped. Only inside a write, since only commits evict."""
        return self._pools.get(key) or self._load(key)

    def find_live(self, key: Key, now: int) -> CachedPool | None:
        pool = self.find(key)
        return pool if pool is not None and now < pool.expires_at else None

    def create(self, key: Key, list_id: int, note: bytes, expires_at: int) -> CachedPool:
        """Create a pool under a key that has none. The new pool shares the history of dropped pools with that key."""
        family = self._spent.family(key)
        params = self._namespace.params(key)
        id = self._namespace.next_number()
        row = self._group_commit.connection.execute(ROOT_OF_POOLS, params).fetchone()
        (root,) = row or (id,)
        self._group_commit.connection.execute(POOLS.insert, (id, root, *params, expires_at, False, list_id, note))
        self._pools[key] = pool = CachedPool(id, family, root, expires_at, list_id, note)
        self._group_commit.unwritten[self] = None
        return pool

    def assign(self, pool: CachedPool, list_id: int, note: bytes, expires_at: int) -> None:
        """Assign a list to the pool. If it is the same list, the pool keeps its position."""
        if list_id != pool.list_id:
            self._lists.remove(pool.list_id)
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
        """Return the remaining items of the chunk from which the pool's next item comes."""
        return pool.chunk[pool.position - pool.chunk_start :]

    def advance(self, pool: CachedPool, count: int, *, handed: int) -> None:
        """Move past the next items, `handed` of which were handed out and the others skipped."""
        pool.position += count
        pool.handed += handed
        self._changed[pool] = None
        self._group_commit.unwritten[self] = None

    def close(self, key: Key, pool: CachedPool) -> None:
        """Drop a pool, and keep the history of its handed-out items."""
        if pool.handed == 0:
            self.remove(key, pool.id, pool.list_id)
            return
        self._evict(key)
        self._group_commit.connection.execute(_CLOSE, (pool.id,))
        self._lists.remove(pool.list_id)

    def remove_id(self, id: int) -> None:
        """Remove the pool with this id, and its list."""
        key = Key(*self._group_commit.connection.execute(_KEY_OF, (id,)).fetchone())
        pool = self.find(key)
        assert pool is not None
        self.remove(key, pool.id, pool.list_id)

    def remove(self, key: Key, id: int, list_id: int) -> None:
        """Remove a pool and its list; `tidy` deletes their rows. `list_id` is 0 for a dropped pool."""
        if list_id:
            self._evict(key)
            self._lists.remove(list_id)
        POOLS.remove(self._group_commit.connection, id)

    def flush(self) -> None:
        if self._changed:
            rows = [(pool.position, pool.handed, pool.id) for pool in self._changed]
            self._group_commit.connection.executemany(_ADVANCE, rows)
            self._changed.clear()
        if len(self._pools) > MAX_POOLS:  # not earlier, because operations of the group still use the old values
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
