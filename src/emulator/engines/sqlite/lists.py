"""Lists that pools hand out from: rows of many items each, which never change once they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from emulator.engines.base import Key
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import KEY, NamespaceIds

CHUNK = 128
"""Items of a row. A process that hands out in turns with another one reads the row at hand again and again, so few."""

_FIND = f"SELECT id, pool, size, expires_at FROM lists WHERE {KEY}"
_CREATE = """
    INSERT INTO lists (id, space, shelf, owner, name, holder, place, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD = "INSERT INTO chunks (list, first, items) VALUES (?, ?, ?)"
_GROW = "UPDATE lists SET size = ?, expires_at = ? WHERE id = ?"
_GIVE = "UPDATE lists SET pool = ?, expires_at = ? WHERE id = ?"
_CHUNK = "SELECT first, items FROM chunks WHERE list = ? AND first <= ? ORDER BY first DESC LIMIT 1"


class Listed(NamedTuple):
    """What is known of a list as a whole."""

    id: int
    pool: int | None
    """The one that hands out from it; it lives as long as this."""
    size: int
    expires_at: int


class Lists:
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds) -> None:
        self._group_commit = group_commit
        self._namespace = namespace

    def find(self, source: Key) -> Listed | None:
        """The list, dead or alive."""
        row = self._group_commit.connection.execute(_FIND, self._namespace.of(source)).fetchone()
        return None if row is None else Listed(*row)

    def fresh(self, source: Key, expires_at: int) -> Listed:
        """A new, empty list under a key where there is none."""
        id = self._namespace.number()
        self._group_commit.connection.execute(_CREATE, (id, *self._namespace.of(source), expires_at))
        return Listed(id, None, 0, expires_at)

    def add(self, to: Listed, chunks: Sequence[tuple[int, bytes]], expires_at: int) -> None:
        """Add what `packed` gave, and move the list's end."""
        size, rows = to.size, []
        for count, items in chunks:
            rows.append((to.id, size, items))
            size += count
        self._group_commit.connection.executemany(_ADD, rows)
        self._group_commit.connection.execute(_GROW, (size, expires_at, to.id))

    def give(self, id: int, pool: int, expires_at: int) -> None:
        """Have the list end with the pool that hands out from it."""
        self._group_commit.connection.execute(_GIVE, (pool, expires_at, id))

    def chunk(self, id: int, position: int) -> tuple[int, list[str]]:
        """Items that stand side by side, up to and past `position` if the list is that long, and the first's place."""
        row = self._group_commit.connection.execute(_CHUNK, (id, position)).fetchone()
        return (0, []) if row is None else (row[0], row[1].decode().split("\0"))

    def tombstone(self, id: int) -> None:
        """Take the list away and leave its items to `purge`."""
        self._group_commit.connection.execute("DELETE FROM lists WHERE id = ?", (id,))
        self._group_commit.connection.execute("INSERT INTO dead_lists VALUES (?)", (id,))


def packed(items: Sequence[str]) -> list[tuple[int, bytes]]:
    """Items as rows keep them, each with how many there are; what cannot be kept raises ValueError."""
    return list(_packed(items))


def _packed(items: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(items), CHUNK):
        some = items[start : start + CHUNK]
        text = "\0".join(some)
        if text.count("\0") >= len(some):
            raise ValueError("an item must not contain NUL")
        yield len(some), text.encode()
