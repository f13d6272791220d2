"""The lists that pools hand out from, and the items that each family of pools has handed out.

A list is rows of many items each, which never change. Of a handed-out item, a digest stays until a reset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from emulator.core.keys import Key
from emulator.storage.records import item_digest
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import BY_KEY, CHUNKS, FAMILIES, LISTS, POOLS

CHUNK_SIZE = 128
"""Items in one row. Few, because each draw reads one."""
_CHUNKS_AT_ONCE = 16
"""Chunks."""

_FIND_LIST = f"""
    SELECT id, (SELECT id FROM pools WHERE list = lists.id), expires_at FROM lists WHERE {BY_KEY} AND expires_at > ?
"""
_LIST_SIZE = "SELECT coalesce(max(end), 0) FROM chunks WHERE list = ?"
SET_EXPIRY = "UPDATE lists SET expires_at = ? WHERE id = ?"
_SELECT_CHUNKS = "SELECT end, items FROM chunks WHERE list = ? AND end > ? ORDER BY end LIMIT ?"
_FIND_FAMILY = "SELECT id FROM families WHERE space = ? AND kind = ? AND owner = ? AND channel = ? AND user = ?"
_IS_SPENT = "SELECT 1 FROM spent WHERE family = ? AND digest = ?"


class ListRow(NamedTuple):
    id: int
    pool: int | None
    """The pool that uses the list; they expire together."""
    expires_at: int


class Lists(Tables):
    """Base of what uses lists."""

    def _find_list(self, source: Key, now: int = -1) -> ListRow | None:
        """Return the list with this key, unless it has expired at `now`; `None` if there is none."""
        row = self._find_row(_FIND_LIST, source, now)
        return None if row is None else ListRow(*row)

    def _live_or_new_list(self, source: Key, now: int, expires_at: int) -> ListRow:
        """Return a live list, or a new one, without items, in place of an expired one and its pool."""
        found = self._find_list(source)
        if found is not None:
            if now < found.expires_at:
                return found
            self._remove_row(LISTS, found.id)
            if found.pool is not None:
                self._remove_row(POOLS, found.pool)
        return ListRow(self._add_row(LISTS, source, expires_at), None, expires_at)

    def _size_of_list(self, id: int) -> int:
        return int(self._execute(_LIST_SIZE, id).fetchone()[0])

    def _append_chunks(self, id: int, chunks: Sequence[tuple[int, bytes]]) -> None:
        """Append the chunks that `split_chunks` returned."""
        end = self._size_of_list(id)
        for count, items in chunks:
            end += count
            self._execute(CHUNKS.insert, id, end, items)

    def _items_of_list(self, id: int, at: int, chunks: int = _CHUNKS_AT_ONCE) -> list[str]:
        """Return the items of some chunks, from position `at` of the list on; none from its end on."""
        rows = self._execute(_SELECT_CHUNKS, id, at, chunks).fetchall()
        items = [item for _, packed in rows for item in packed.decode().split("\0")]
        return items[at - rows[-1][0] :] if rows else []

    def _family_of(self, space: int, key: Key) -> int:
        """Return the id of the family of a pool in a namespace, and create it if needed. Only inside a write."""
        params = (space, key.kind, key.owner, key.channel, key.user)
        found = self._execute(_FIND_FAMILY, *params).fetchone()
        family = int(found[0]) if found else self.group_commit.next_number()
        if not found:
            self._execute(FAMILIES.insert, family, *params)
        return family

    def _is_spent(self, family: int, item: str) -> bool:
        return self._execute(_IS_SPENT, family, item_digest(item)).fetchone() is not None


def split_chunks(items: Sequence[str]) -> list[tuple[int, bytes]]:
    """Return chunks: the number of items, and the items separated by NUL. Raises `ValueError` for NUL in an item."""
    chunks = []
    for start in range(0, len(items), CHUNK_SIZE):
        some = items[start : start + CHUNK_SIZE]
        text = "\0".join(some)
        if text.count("\0") >= len(some):
            raise ValueError("an item must not contain NUL")
        chunks.append((len(some), text.encode()))
    return chunks
