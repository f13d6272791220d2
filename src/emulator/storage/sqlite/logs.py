"""Logs on SQLite: one row per entry. Entries never change, so a reading stops at the newest number when it began."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from emulator.core.keys import NEVER, Key
from emulator.storage.merging import FetchRows, Row, merged_items
from emulator.storage.shapes import ListedLog, LogPages
from emulator.storage.sqlite.catalog import GroupListings
from emulator.storage.sqlite.connection import engine_errors
from emulator.storage.sqlite.namespace import read_operation, write_operation
from emulator.storage.sqlite.tables import BY_KEY, ITEMS, LOGS

_FIND_LOG = f"SELECT id FROM logs WHERE {BY_KEY}"
_LATEST_TIME = "SELECT at FROM items WHERE log = ? AND expires_at > ? ORDER BY at DESC LIMIT 1"
_DESCRIPTION = "SELECT count(*), coalesce(max(at), 0) FROM items WHERE log = :id AND expires_at > :now"
# Newest first, so times and numbers are negative.
_SELECT_ITEMS = "SELECT -at, -number, value FROM items WHERE log = :log AND number < :bound AND expires_at > :now"
_SAME_TIME = f"{_SELECT_ITEMS} AND at = -:at AND at >= :since AND number < -:number ORDER BY number DESC LIMIT :size"
_EARLIER = f"{_SELECT_ITEMS} AND at < -:at AND at >= :since ORDER BY at DESC, number DESC LIMIT :size"


class SqliteLogs(GroupListings):
    _table, _description, _listed = LOGS, _DESCRIPTION, ListedLog

    @write_operation
    def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        row = self._find_row(_FIND_LOG, key)
        log = row[0] if row else self._add_row(LOGS, key)
        self._execute(ITEMS.insert, self.group_commit.next_number(), log, self._namespace.id, now, expires_at, value)

    @read_operation
    def read(self, key: Key, *, now: int, since: int = 0) -> LogPages:
        where, of_key = self._namespace.key_condition(key)
        logs = self._execute(f"SELECT id FROM logs WHERE {where}", *of_key).fetchall()
        params = {"bound": self.group_commit.upper_bound, "now": now, "since": since}
        latest, fetches = 0, []
        for (log,) in logs:
            for (at,) in self._execute(_LATEST_TIME, log, now):
                latest = max(latest, at)
            fetches.append(_log_reader(self.group_commit.connection, {"log": log, **params}))
        return LogPages(latest, merged_items(fetches))


def _log_reader(connection: sqlite3.Connection, params: Mapping[str, int]) -> FetchRows:
    """Return what reads the entries of a log, newest first.

    As one query, SQLite would scan all later entries of the same time again.
    """
    start = -NEVER, 0

    async def fetch(size: int) -> tuple[list[Row], bool]:
        nonlocal start
        at, number = start
        rows: list[Row] = []
        with engine_errors():
            for statement in (_SAME_TIME, _EARLIER):
                position = {"at": at, "number": number, "size": size - len(rows)}
                rows += connection.execute(statement, {**params, **position}).fetchall()
        if rows:
            start = rows[-1][:2]
        return rows, len(rows) == size

    return fetch
