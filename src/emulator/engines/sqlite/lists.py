"""The lists that pools hand out from: rows of many items each, which never change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from emulator.engines.base import Key
from emulator.engines.sqlite.namespace_ids import BY_KEY, Tables

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
        """Append the chunks that `packed` returned, and set the list's expiry."""
        size, rows = to.size, []
        for count, items in chunks:
            rows.append((to.id, size, items))
            size += count
        self._group_commit.connection.executemany(_ADD_CHUNK, rows)
        self._group_commit.connection.execute(_GROW, (size, expires_at, to.id))

    def assign(self, id: int, pool: int, expires_at: int) -> None:
        self._group_commit.connection.execute(_ASSIGN, (pool, expires_at, id))

    def chunk(self, id: int, position: int) -> tuple[int, list[str]]:
        """Return the chunk with `position`, or the last: the position of its first item, and its items."""
        row = self._group_commit.connection.execute(_CHUNK, (id, position)).fetchone()
        return (0, []) if row is None else (row[0], row[1].decode().split("\0"))

    def tombstone(self, id: int) -> None:
        """Remove the list; `tidy` deletes its items."""
        self._group_commit.connection.execute("DELETE FROM lists WHERE id = ?", (id,))
        self._group_commit.connection.execute("INSERT INTO dead_lists VALUES (?)", (id,))


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
