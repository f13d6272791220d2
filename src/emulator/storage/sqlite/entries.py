"""Reads a ballot's entries while voting goes on, in a snapshot on a second connection."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from emulator.core.keys import NEVER, Key
from emulator.storage.merging import Row, merged_pages
from emulator.storage.shapes import BallotEntry
from emulator.storage.sqlite.connection import engine_errors
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import BY_KEY, BY_KEY_ALL_CHANNELS

_ONE = f"SELECT id FROM ballots WHERE {BY_KEY} AND expires_at > ?"
_ALL_CHANNELS = f"SELECT id FROM ballots WHERE {BY_KEY_ALL_CHANNELS} AND expires_at > ?"
_ROW = "SELECT cast_at, number, voter, choice, times, note FROM entries"
_SAME_TIME = f"{_ROW} WHERE ballot = ? AND cast_at = ? AND number > ? ORDER BY number LIMIT ?"
_LATER = f"{_ROW} WHERE ballot = ? AND cast_at > ? ORDER BY cast_at, number LIMIT ?"


class Reading:
    """Reads the entries of one ballot, oldest first."""

    def __init__(self, connection: sqlite3.Connection, ballot: int, since: int) -> None:
        self._ballot = ballot
        self._connection = connection
        self._position = (since, -1)

    async def fetch(self, size: int) -> tuple[list[Row], bool]:
        # As one query, SQLite would scan all earlier rows of the same time again.
        ballot, (since, number) = self._ballot, self._position
        with engine_errors():
            rows: list[Row] = self._connection.execute(_SAME_TIME, (ballot, since, number, size)).fetchall()
            if len(rows) < size:
                rows += self._connection.execute(_LATER, (ballot, since, size - len(rows))).fetchall()
        if rows:
            self._position = rows[-1][:2]
        return rows, len(rows) == size


class Readings(Tables):
    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        async with self._open_readings(key, now, since) as readings:
            async for rows in merged_pages([each.fetch for each in readings], NEVER if limit is None else limit):
                yield [BallotEntry(voter, choice, times, at, note) for at, _, voter, choice, times, note in rows]

    def notes(
        self, key: Key, *, now: int, separator: bytes, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        """Return the entries: SQLite does not join notes."""
        return self.entries(key, now=now, since=since, limit=limit)

    @asynccontextmanager
    async def _open_readings(self, key: Key, now: int, since: int) -> AsyncIterator[list[Reading]]:
        self._group_commit.commit_now()
        async with self._group_commit.snapshot() as connection:
            with engine_errors():
                if key.channel is None:
                    params = (*self._namespace.params_all_channels(key), now)
                    ballots = connection.execute(_ALL_CHANNELS, params).fetchall()
                else:
                    ballots = connection.execute(_ONE, (*self._namespace.params(key), now)).fetchall()
            yield [Reading(connection, ballot, since) for (ballot,) in ballots]
