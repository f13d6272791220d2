"""Logs on SQLite: one row per entry. Entries never change, so a reading stops at the newest number when it began."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from emulator.core.keys import NEVER, Key
from emulator.storage.merging import merged_pages
from emulator.storage.shapes import Item, ListedLog, Span
from emulator.storage.sqlite.catalog import BY_CHANNEL, page_of
from emulator.storage.sqlite.entries import Reading
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import BY_KEY, BY_KEY_ALL_CHANNELS, ITEMS, KEY, LOGS

_LOG = f"SELECT id FROM logs WHERE {BY_KEY}"
_LOGS_ALL_CHANNELS = f"SELECT id FROM logs WHERE {BY_KEY_ALL_CHANNELS}"
_LATEST = "SELECT at FROM items WHERE log = ? AND expires_at > ? ORDER BY at DESC LIMIT 1"
_COUNT = "SELECT count(*), coalesce(max(at), 0) FROM items WHERE log = ? AND expires_at > ?"
# Newest first, so times and numbers are negative.
_ROW = "SELECT -at, -number, value FROM items WHERE log = :of AND number < :bound AND expires_at > :now"
_SAME_TIME = f"{_ROW} AND at = -:at AND at >= :since AND number < -:number ORDER BY number DESC LIMIT :size"
_EARLIER = f"{_ROW} AND at < -:at AND at >= :since ORDER BY at DESC, number DESC LIMIT :size"


class SqliteLogs(Tables):
    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._append, key, value, now, expires_at)

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        latest, readings = await self._group_commit.read(self._begin, key, now, since)
        return Span(latest, self._pages(readings))

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedLog]:
        listed = []
        for id, *key in await self._group_commit.read(self._listed_rows, group, after, limit, now, matching):
            listed.append(ListedLog(Key(*key), *await self._group_commit.read(self._count_entries, id, now)))
            await asyncio.sleep(0)
        return listed

    async def _pages(self, readings: Sequence[Reading]) -> AsyncIterator[Sequence[Item]]:
        async for rows in merged_pages([each.fetch for each in readings], NEVER):
            yield [Item(-negative, value) for negative, _, value in rows]

    def _begin(self, key: Key, now: int, since: int) -> tuple[int, list[Reading]]:
        connection = self._group_commit.connection
        if key.channel is None:
            logs = connection.execute(_LOGS_ALL_CHANNELS, self._namespace.params_all_channels(key)).fetchall()
        else:
            logs = connection.execute(_LOG, self._namespace.params(key)).fetchall()
        latest = max((at for log in logs for (at,) in connection.execute(_LATEST, (*log, now))), default=0)
        params = {"bound": self._namespace.upper_bound(), "now": now, "since": since}
        start = (-NEVER, 0)
        readings = [Reading(connection, _SAME_TIME, _EARLIER, {"of": log, **params}, start) for (log,) in logs]
        return latest, readings

    def _listed_rows(self, group: Key, after: Key | None, limit: int, now: int, matching: str) -> list[tuple[Any, ...]]:
        of_group = self._namespace.group(group)
        statement, params = page_of(LOGS, f"id, {KEY}", of_group, BY_CHANNEL, after, matching)
        return self._group_commit.connection.execute(statement, params | {"now": now, "limit": limit}).fetchall()

    def _count_entries(self, log: int, now: int) -> tuple[int, int]:
        """Return the number of live entries of a log, and the time of the newest."""
        counted: tuple[int, int] = self._group_commit.connection.execute(_COUNT, (log, now)).fetchone()
        return counted

    def _append(self, key: Key, value: bytes, now: int, expires_at: int) -> None:
        connection, params = self._group_commit.connection, self._namespace.params(key)
        row = connection.execute(_LOG, params).fetchone()
        if row is None:
            row = (self._namespace.next_number(),)
            connection.execute(LOGS.insert, (*row, *params))
        item = (self._namespace.next_number(), *row, self._namespace.id, now, expires_at, value)
        connection.execute(ITEMS.insert, item)
