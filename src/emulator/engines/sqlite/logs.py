"""Logs on SQLite: one row per entry. Entries never change, so a reading stops at the newest number when it began."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.engines.base import NEVER, Item, Key, Span
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.merge import Row, merged
from emulator.engines.sqlite.namespace_ids import BY_KEY, BY_KEY_ALL_CHANNELS, Tables

_LOG = f"SELECT id FROM logs WHERE {BY_KEY}"
_LOGS_ALL_CHANNELS = f"SELECT id FROM logs WHERE {BY_KEY_ALL_CHANNELS}"
_CREATE = "INSERT INTO logs (id, space, shelf, owner, name, holder, place) VALUES (?, ?, ?, ?, ?, ?, ?)"
_APPEND = "INSERT INTO items (number, log, space, at, expires_at, value) VALUES (?, ?, ?, ?, ?, ?)"
_LATEST = "SELECT at FROM items WHERE log = ? AND expires_at > ? ORDER BY at DESC LIMIT 1"
_PAGE = """
    SELECT -at, -number, value FROM items
    WHERE log = ? AND (at, number) < (?, ?) AND number < ? AND at >= ? AND expires_at > ?
    ORDER BY at DESC, number DESC LIMIT ?
"""


class _Reading:
    """Reads one log, newest first."""

    def __init__(self, group_commit: GroupCommit, log: int, start: tuple[int, int], now: int, since: int) -> None:
        self._group_commit = group_commit
        self._log = log
        self._position = start
        self._bounds = (start[1], since, now)

    def __call__(self, size: int) -> list[Row]:
        rows: list[Row] = self._group_commit.connection.execute(
            _PAGE, (self._log, *self._position, *self._bounds, size)
        ).fetchall()
        if rows:
            self._position = (-rows[-1][0], -rows[-1][1])
        return rows


class SqliteLogs(Tables):
    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._append, key, value, now, expires_at)

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        latest, readings = await self._group_commit.read(self._begin, key, now, since)
        return Span(latest, self._pages(readings))

    async def _pages(self, readings: Sequence[_Reading]) -> AsyncIterator[Sequence[Item]]:
        async for rows in merged(readings, NEVER):
            yield [Item(-negative, value) for negative, _, value in rows]

    def _begin(self, key: Key, now: int, since: int) -> tuple[int, list[_Reading]]:
        connection = self._group_commit.connection
        if key.channel is None:
            logs = connection.execute(_LOGS_ALL_CHANNELS, self._namespace.params_all_channels(key)).fetchall()
        else:
            logs = connection.execute(_LOG, self._namespace.params(key)).fetchall()
        latest = max((at for log in logs for (at,) in connection.execute(_LATEST, (*log, now))), default=0)
        start = (NEVER, self._namespace.upper_bound())
        return latest, [_Reading(self._group_commit, log, start, now, since) for (log,) in logs]

    def _append(self, key: Key, value: bytes, now: int, expires_at: int) -> None:
        connection, params = self._group_commit.connection, self._namespace.params(key)
        row = connection.execute(_LOG, params).fetchone()
        if row is None:
            row = (self._namespace.next_number(),)
            connection.execute(_CREATE, (*row, *params))
        connection.execute(_APPEND, (self._namespace.next_number(), *row, self._namespace.id, now, expires_at, value))
