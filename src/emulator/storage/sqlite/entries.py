"""Reads a ballot's entries while voting goes on, in a snapshot on a second connection."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from emulator.core.keys import NEVER, Key
from emulator.storage.merging import Row, merged_pages
from emulator.storage.shapes import BallotEntry
from emulator.storage.sqlite.connection import engine_errors
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import BY_KEY, BY_KEY_ALL_CHANNELS

_ONE = f"SELECT id FROM ballots WHERE {BY_KEY} AND expires_at > ?"
_ALL_CHANNELS = f"SELECT id FROM ballots WHERE {BY_KEY_ALL_CHANNELS} AND expires_at > ?"
_ROW = "SELECT cast_at, number, voter, choice, times, note FROM entries WHERE ballot = :of"
_SAME_TIME = f"{_ROW} AND cast_at = :at AND number > :number ORDER BY number LIMIT :size"
_LATER = f"{_ROW} AND cast_at > :at ORDER BY cast_at, number LIMIT :size"


class Reading:
    """Reads rows in the order of their first two columns, a time and a number.

    As one query, SQLite would scan all earlier rows of the same time again. So `same_time` selects those of the time
    `:at` after `:number`, and `later` those of later times.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        same_time: str,
        later: str,
        params: Mapping[str, int],
        start: tuple[int, int],
    ) -> None:
        self._connection = connection
        self._statements = same_time, later
        self._params = params
        self._position = start

    async def fetch(self, size: int) -> tuple[list[Row], bool]:
        at, number = self._position
        rows: list[Row] = []
        with engine_errors():
            for statement in self._statements:
                params = {**self._params, "at": at, "number": number, "size": size - len(rows)}
                rows += self._connection.execute(statement, params).fetchall()
        if rows:
            self._position = rows[-1][:2]
        return rows, len(rows) == size


class Readings(Tables):
    """The part of `Ballots` that reads entries."""

    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        async with self._open_readings(key, now, since) as readings:
            async for rows in merged_pages([each.fetch for each in readings], NEVER if limit is None else limit):
                yield [BallotEntry(voter, choice, times, at, note) for at, _, voter, choice, times, note in rows]

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
            yield [Reading(connection, _SAME_TIME, _LATER, {"of": ballot}, (since, -1)) for (ballot,) in ballots]
