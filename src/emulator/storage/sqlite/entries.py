"""Reads a ballot's entries while voting goes on, in a snapshot on a second connection."""

from __future__ import annotations

import asyncio
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

# The aggregate takes the rows in the order of the index. The end of a page comes from the index alone.
_BY_AGE = "FROM entries INDEXED BY entries_by_age WHERE ballot = :ballot AND cast_at >= :since"
_TIME_AFTER = f"SELECT cast_at {_BY_AGE} ORDER BY cast_at LIMIT 1 OFFSET :size"
_JOINED = f"""
    SELECT count(*), min(whole), CAST(group_concat(note, :separator) AS BLOB) {_BY_AGE} AND cast_at < :until
"""

JOINED_PAGE = 1_000
"""Notes that are joined between two returns to the event loop: some 90 KB, in half a millisecond."""


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

    def join_notes(self, size: int, separator: bytes) -> tuple[int, bytes] | None:
        """Return how many entries the next times have together, at most `size`, and their joined notes.

        Returns `None` if there are none, or if they cannot be joined. Not to be called after other reads.
        """
        params: dict[str, object] = {"ballot": self._ballot, "since": self._position[0]}
        after = self._connection.execute(_TIME_AFTER, params | {"size": size}).fetchone()
        until = after[0] if after else NEVER
        params |= {"until": until, "separator": separator.decode()}
        count, is_whole, text = self._connection.execute(_JOINED, params).fetchone()
        if not is_whole:
            return None
        self._position = (until, -1)
        return count, text


class Readings(Tables):
    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        async with self._open_readings(key, now, since) as readings:
            async for rows in merged_pages([each.fetch for each in readings], NEVER if limit is None else limit):
                yield _entries(rows)

    async def notes(
        self, key: Key, *, now: int, separator: bytes, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[bytes | Sequence[BallotEntry]]:
        left = NEVER if limit is None else limit
        async with self._open_readings(key, now, since) as readings:
            while len(readings) == 1 and left:
                with engine_errors():
                    page = readings[0].join_notes(min(JOINED_PAGE, left), separator)
                if page is None:
                    break
                count, text = page
                left -= count
                yield text
                await asyncio.sleep(0)
            async for rows in merged_pages([each.fetch for each in readings], left):
                yield _entries(rows)

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


def _entries(rows: Sequence[Row]) -> list[BallotEntry]:
    return [BallotEntry(voter, choice, times, at, note) for at, _, voter, choice, times, note in rows]
