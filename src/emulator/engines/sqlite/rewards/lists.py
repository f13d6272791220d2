"""The lists that pools hand out from, and the items that each family of pools has handed out.

A list is rows of many items each, which never change. Of a handed-out item, a digest stays until a reset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from emulator.engines.base import Key
from emulator.engines.records import digest_of
from emulator.engines.sqlite.namespace_ids import BY_KEY, Tables
from emulator.engines.sqlite.table_list import LISTS

CHUNK_SIZE = 128
"""Items in one row. Few, because a process that draws alternately with another one reads the same row repeatedly."""

_FIND = f"SELECT id, pool, size, expires_at FROM lists WHERE {BY_KEY}"
_CREATE = """
    INSERT INTO lists (id, space, shelf, owner, name, holder, place, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_CHUNK = "INSERT INTO chunks (list, first, items) VALUES (?, ?, ?)"
_GROW = "UPDATE lists SET size = ?, expires_at = ? WHERE id = ?"
_ASSIGN = "UPDATE lists SET pool = ?, expires_at = ? WHERE id = ?"
_CHUNK = "SELECT first, items FROM chunks WHERE list = ? AND first <= ? ORDER BY first DESC LIMIT 1"
_FAMILY = "SELECT id FROM families WHERE space = ? AND shelf = ? AND owner = ? AND holder = ? AND place = ?"
_CREATE_FAMILY = "INSERT INTO families (id, space, shelf, owner, holder, place) VALUES (?, ?, ?, ?, ?, ?)"
_IS_SPENT = "SELECT 1 FROM spent WHERE family = ? AND digest = ?"
_SPENT_AMONG = "SELECT digest FROM spent WHERE family = ? AND digest IN ({})"
_SPEND = "INSERT OR IGNORE INTO spent (family, digest) VALUES (?, ?)"


class ListRow(NamedTuple):
    id: int
    pool: int | None
    """The pool that uses the list; they expire together."""
    size: int
    expires_at: int


class Lists(Tables):
    def find(self, source: Key) -> ListRow | None:
        """Return the list, alive or expired."""
        row = self._group_commit.connection.execute(_FIND, self._namespace.params(source)).fetchone()
        return None if row is None else ListRow(*row)

    def create(self, source: Key, expires_at: int) -> ListRow:
        """Create an empty list where there is none."""
        id = self._namespace.next_number()
        self._group_commit.connection.execute(_CREATE, (id, *self._namespace.params(source), expires_at))
        return ListRow(id, None, 0, expires_at)

    def append(self, to: ListRow, chunks: Sequence[tuple[int, bytes]], expires_at: int) -> None:
        """Append the chunks that `packed` returned, and let the list live until `expires_at` at least."""
        size, rows = to.size, []
        for count, items in chunks:
            rows.append((to.id, size, items))
            size += count
        self._group_commit.connection.executemany(_ADD_CHUNK, rows)
        self._group_commit.connection.execute(_GROW, (size, max(expires_at, to.expires_at), to.id))

    def assign(self, id: int, pool: int, expires_at: int) -> None:
        self._group_commit.connection.execute(_ASSIGN, (pool, expires_at, id))

    def chunk(self, id: int, position: int) -> tuple[int, list[str]]:
        """Return the chunk with `position`, or the last: the position of its first item, and its items."""
        row = self._group_commit.connection.execute(_CHUNK, (id, position)).fetchone()
        return (0, []) if row is None else (row[0], row[1].decode().split("\0"))

    def tombstone(self, id: int) -> None:
        """Remove the list; `tidy` deletes its items."""
        LISTS.bury(self._group_commit.connection, id)


class SpentItems(Tables):
    def family(self, key: Key, *, space: int | None = None) -> int:
        """Return the id of the family of a pool, and create the family if needed. Only inside a write.

        `space` is the id of the namespace; by default, the present one.
        """
        params = (space or self._namespace.id, key.kind, key.owner, key.user, key.channel)
        found = self._group_commit.connection.execute(_FAMILY, params).fetchone()
        family = int(found[0]) if found else self._namespace.next_number()
        if not found:
            self._group_commit.connection.execute(_CREATE_FAMILY, (family, *params))
        return family

    def is_unspent(self, family: int, item: str) -> bool:
        return self._group_commit.connection.execute(_IS_SPENT, (family, digest_of(item))).fetchone() is None

    def count_first(self, family: int, items: Sequence[str]) -> int:
        """Return how many items at the front of a chunk of a list are spent."""
        digests = list(map(digest_of, items))
        among = _SPENT_AMONG.format(", ".join("?" * len(digests)))
        spent = {digest for (digest,) in self._group_commit.connection.execute(among, (family, *digests))}
        return next((at for at, digest in enumerate(digests) if digest not in spent), len(digests))

    def spend(self, family: int, item: str) -> bool:
        """Note an item as spent; return whether it was not before."""
        return self._group_commit.connection.execute(_SPEND, (family, digest_of(item))).rowcount == 1


def packed(items: Sequence[str]) -> list[tuple[int, bytes]]:
    """Return chunks: the number of items, and the items separated by NUL. Raises `ValueError` for NUL in an item."""
    chunks = []
    for start in range(0, len(items), CHUNK_SIZE):
        some = items[start : start + CHUNK_SIZE]
        text = "\0".join(some)
        if text.count("\0") >= len(some):
            raise ValueError("an item must not contain NUL")
        chunks.append((len(some), text.encode()))
    return chunks
