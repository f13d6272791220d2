"""Documents on SQLite: a row each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.engines.base import Change, Key
from emulator.engines.sqlite.group_commit import Turns
from emulator.engines.sqlite.namespace_ids import KEY, Space

_READ = f"SELECT value, expires_at FROM documents WHERE {KEY}"
_END = f"SELECT expires_at FROM documents WHERE {KEY}"
_HOLDERS = """
    SELECT holder FROM documents
    WHERE space = ? AND shelf = ? AND owner = ? AND name = ? AND place = ? AND holder > ? AND expires_at > ?
    ORDER BY holder LIMIT ?
"""
_WRITE = """
    INSERT INTO documents (space, shelf, owner, name, holder, place, value, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (space, shelf, owner, name, holder, place)
    DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
"""
_DROP = f"DELETE FROM documents WHERE {KEY}"


class SqliteDocuments:
    def __init__(self, turns: Turns, space: Space) -> None:
        self._turns = turns
        self._space = space

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        return await self._turns.read(self._read, keys, now)

    async def update(self, keys: Sequence[Key], change: Change, *, now: int, expires_at: int) -> dict[Key, bytes]:
        return await self._turns.write(self._update, keys, change, now, expires_at)

    async def holders(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        return await self._turns.read(self._holders, key, after, limit, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        return await self._turns.write(self._drop, keys, now)

    def _read(self, keys: Sequence[Key], now: int) -> dict[Key, bytes]:
        found: dict[Key, bytes] = {}
        for key in keys:
            row = self._turns.connection.execute(_READ, self._space.of(key)).fetchone()
            if row is not None and now < row[1]:
                found[key] = row[0]
        return found

    def _update(self, keys: Sequence[Key], change: Change, now: int, expires_at: int) -> dict[Key, bytes]:
        live = self._read(keys, now)
        written = dict(change(dict(live)))
        if strangers := written.keys() - set(keys):
            raise ValueError(f"a change may only write the keys it was given, not {strangers}")
        self._note_fallen(written.keys() - live.keys(), now)
        for key, value in written.items():
            self._turns.connection.execute(_WRITE, (*self._space.of(key), value, expires_at))
        return written

    def _drop(self, keys: Sequence[Key], now: int) -> int:
        alive = self._read(keys, now)
        self._note_fallen(set(keys) - alive.keys(), now)
        for key in keys:
            self._turns.connection.execute(_DROP, self._space.of(key))
        return len(alive)

    def _holders(self, key: Key, after: str, limit: int, now: int) -> list[str]:
        shared = (self._space.id, key.shelf, key.owner, key.name, key.place)
        rows = self._turns.connection.execute(_HOLDERS, (*shared, after, now, limit)).fetchall()
        return [holder for (holder,) in rows]

    def _note_fallen(self, keys: Iterable[Key], now: int) -> None:
        for key in keys:
            row = self._turns.connection.execute(_END, self._space.of(key)).fetchone()
            if row is not None and row[0] <= now:
                self._space.fell(key, row[0])
