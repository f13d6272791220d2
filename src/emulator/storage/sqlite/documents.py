"""Documents on SQLite: one row each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.core.bounded_cache import BoundedCache
from emulator.core.keys import Key
from emulator.storage.shapes import Edit, Kept, writes_of_change
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.tables import BY_KEY, DOCUMENTS, KEYED

_READ = f"SELECT value, expires_at FROM documents WHERE {BY_KEY}"
_USERS = """
    SELECT user FROM documents
    WHERE space = ? AND kind = ? AND owner = ? AND name = ? AND channel = ? AND user > ? AND expires_at > ?
    ORDER BY user LIMIT ?
"""
_INSERT = f"{DOCUMENTS.insert} ON CONFLICT ({KEYED})"
_SET = f"{_INSERT} DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at"
_WRITE = f"{_INSERT} DO UPDATE SET value = excluded.value, expires_at = max(expires_at, excluded.expires_at)"
_KEEP = f"{_WRITE} WHERE value <> excluded.value OR expires_at < excluded.expires_at"
_DROP = f"DELETE FROM documents WHERE {BY_KEY}"
_MAX_PEEKED = 49_152
"""Two documents for each user of the directory (`features/identity/directory.py`) that wrote recently."""
_ABSENT = (b"", 0)
"""The row of a document that does not exist: it has always been expired."""


class SqliteDocuments(Tables):
    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._peeked: BoundedCache[Key, tuple[bytes, int]] = BoundedCache(_MAX_PEEKED)
        """Value and expiry of documents that were peeked at or kept. One that was kept may expire later than this."""
        self._kept: list[tuple[object, ...]] = []
        """The rows of `keep` that are not written yet. Their documents are in `_peeked`."""
        self._unwritten: set[Key] = set()
        """The keys of these rows."""

    def flush(self) -> None:
        if self._kept:
            self._group_commit.write_rows(_KEEP, self._kept)
            self._kept.clear()
        self._unwritten.clear()

    def forget_read(self) -> None:
        self._peeked.retain(self._unwritten)

    def roll_back(self) -> None:
        self._peeked.clear()
        self._unwritten.clear()
        self._kept.clear()

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        return await self._group_commit.read(self._read, keys, now)

    async def peek(self, key: Key, *, now: int) -> bytes | None:
        row = self._peeked.get(key)
        if row is None or (row is not _ABSENT and row[1] <= now):
            row = await self._group_commit.peek(self._cache_row, key)
        return row[0] if now < row[1] else None

    async def update(
        self, keys: Sequence[Key], change: Edit, *, now: int, expires_at: int, may_end_earlier: bool = False
    ) -> dict[Key, bytes]:
        statement = _SET if may_end_earlier else _WRITE
        return await self._group_commit.write(self._update, keys, change, now, expires_at, statement)

    async def keep(self, documents: Mapping[Key, bytes], *, replace: bool, now: int, expires_at: int) -> Kept:
        if not replace:
            rows = {key: self._peeked.get(key) or _ABSENT for key in documents}
            if all(expires_at <= row[1] for row in rows.values()):
                return Kept({key: row[0] for key, row in rows.items()})
        return Kept(*await self._group_commit.join(self._keep, documents, replace, now, expires_at))

    async def users(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        return await self._group_commit.read(self._users, key, after, limit, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        return await self._group_commit.write(self._drop, keys, now)

    async def drop_equal(self, key: Key, value: bytes, *, now: int) -> None:
        await self._group_commit.write(self._drop_equal, key, value, now)

    def _cache_row(self, key: Key) -> tuple[bytes, int]:
        row = self._row(key)
        self._peeked[key] = row
        return row

    def _row(self, key: Key) -> tuple[bytes, int]:
        if key in self._unwritten:  # so many were peeked at that the cache no longer has it
            self.flush()
        return self._group_commit.connection.execute(_READ, self._namespace.params(key)).fetchone() or _ABSENT

    def _read(self, keys: Sequence[Key], now: int) -> dict[Key, bytes]:
        self.flush()
        found: dict[Key, bytes] = {}
        for key in keys:
            row = self._group_commit.connection.execute(_READ, self._namespace.params(key)).fetchone()
            if row is not None and now < row[1]:
                found[key] = row[0]
        return found

    def _update(self, keys: Sequence[Key], change: Edit, now: int, expires_at: int, statement: str) -> dict[Key, bytes]:
        live = self._read(keys, now)
        written = writes_of_change(change, dict(live), keys)
        for key, value in written.items():
            self._peeked.pop(key)
            self._group_commit.connection.execute(statement, (None, *self._namespace.params(key), expires_at, value))
        return written

    def _keep(self, documents: Mapping[Key, bytes], replace: bool, now: int, expires_at: int) -> dict[Key, bytes]:
        """Add documents to the rows of the next flush; return those that are alive and not replaced."""
        found: dict[Key, bytes] = {}
        for key, value in documents.items():
            if not replace:
                row = self._peeked.get(key) or _ABSENT
                if row[1] < expires_at:
                    row = self._row(key)
                if now < row[1]:
                    found[key] = value = row[0]
                if expires_at <= row[1]:
                    self._peeked[key] = row
                    continue
            self._kept.append((None, *self._namespace.params(key), expires_at, value))
            self._unwritten.add(key)
            self._peeked.renew(key, (value, expires_at))  # it stays until it is written
        if self._kept:
            self._group_commit.unwritten[self] = None
        return found

    def _drop(self, keys: Sequence[Key], now: int) -> int:
        live = self._read(keys, now)
        for key in keys:
            self._peeked.pop(key)
            self._group_commit.connection.execute(_DROP, self._namespace.params(key))
        return len(live)

    def _drop_equal(self, key: Key, value: bytes, now: int) -> None:
        if self._read([key], now).get(key) == value:
            self._drop([key], now)

    def _users(self, key: Key, after: str, limit: int, now: int) -> list[str]:
        self.flush()
        shared = (self._namespace.id, key.kind, key.owner, key.name, key.channel)
        rows = self._group_commit.connection.execute(_USERS, (*shared, after, now, limit)).fetchall()
        return [user for (user,) in rows]
