"""Logs on SQLite: one row per entry. Entries never change, so a reading stops at the newest number when it began."""

from __future__ import annotations

from emulator.core.keys import NEVER, Key
from emulator.storage.merging import merged_items
from emulator.storage.shapes import ListedLog, Span
from emulator.storage.sqlite.namespace import reads, writes
from emulator.storage.sqlite.reading import Listings, fetch_from
from emulator.storage.sqlite.tables import BY_KEY, ITEMS, KEY, LOGS

_LOG = f"SELECT id FROM logs WHERE {BY_KEY}"
_LATEST = "SELECT at FROM items WHERE log = ? AND expires_at > ? ORDER BY at DESC LIMIT 1"
_COUNT = "SELECT count(*), coalesce(max(at), 0) FROM items WHERE log = :id AND expires_at > :now"
# Newest first, so times and numbers are negative.
_ROW = "SELECT -at, -number, value FROM items WHERE log = :of AND number < :bound AND expires_at > :now"
_SAME_TIME = f"{_ROW} AND at = -:at AND at >= :since AND number < -:number ORDER BY number DESC LIMIT :size"
_EARLIER = f"{_ROW} AND at < -:at AND at >= :since ORDER BY at DESC, number DESC LIMIT :size"


class SqliteLogs(Listings):
    @writes
    def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        row = self._find(_LOG, key)
        log = row[0] if row else self._add(LOGS, key)
        self._execute(ITEMS.insert, self._group_commit.next_number(), log, self._namespace.id, now, expires_at, value)

    @reads
    def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        where, of_key = self._namespace.where(key)
        logs = self._execute(f"SELECT id FROM logs WHERE {where}", *of_key).fetchall()
        latest = max((at for log in logs for (at,) in self._execute(_LATEST, *log, now)), default=0)
        params = {"bound": self._group_commit.upper_bound, "now": now, "since": since}
        connection, start = self._group_commit.connection, (-NEVER, 0)
        fetches = [fetch_from(connection, _SAME_TIME, _EARLIER, {"of": log, **params}, start) for (log,) in logs]
        return Span(latest, merged_items(fetches))

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedLog]:
        found = await self._listing(LOGS, KEY, _COUNT, group, now=now, limit=limit, after=after, matching=matching)
        return [ListedLog(key, *counted) for key, counted in found]
