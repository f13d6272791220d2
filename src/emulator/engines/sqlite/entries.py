"""Reads a ballot's entries while voting goes on.

A file is read on a second connection, in a snapshot. In memory there is only one connection, so a cast that replaces a
row gives the old row to the readings that have not reached it.
"""

from __future__ import annotations

import asyncio
import heapq
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from emulator.engines.shapes import NEVER, BallotEntry, Key
from emulator.engines.sqlite.ballot_cache import BallotCache
from emulator.engines.sqlite.connection import engine_errors
from emulator.engines.sqlite.merge import PAGE, Row, merged_pages
from emulator.engines.sqlite.namespace import Namespace, Tables
from emulator.engines.sqlite.table_list import BY_KEY, BY_KEY_ALL_CHANNELS

_ONE = f"SELECT id, latest < {NEVER} FROM ballots WHERE {BY_KEY} AND expires_at > ?"
_ALL_CHANNELS = f"SELECT id, latest < {NEVER} FROM ballots WHERE {BY_KEY_ALL_CHANNELS} AND expires_at > ?"
_ROW = "SELECT cast_at, number, voter, choice, times, note FROM marks"
_SAME_TIME = f"{_ROW} WHERE ballot = ? AND cast_at = ? AND number > ? AND number < ? ORDER BY number LIMIT ?"
_LATER = f"{_ROW} WHERE ballot = ? AND cast_at > ? AND number < ? ORDER BY cast_at, number LIMIT ?"
_OF_VOTER = f"{_ROW} WHERE ballot = ? AND voter = ?"

# The aggregate takes the rows in the order of the index. The end of a range comes from the index alone.
# Each query has one upper bound of `number`: given two, SQLite may choose the later one and scan up to it.
_BY_AGE = "FROM marks INDEXED BY marks_by_age WHERE ballot = :ballot"
_END_OF_SAME = f"""
    SELECT number {_BY_AGE} AND cast_at = :at AND number > :number AND number < :bound
    ORDER BY number LIMIT 1 OFFSET :size - 1
"""
_TIME_AFTER = f"SELECT cast_at {_BY_AGE} AND cast_at > :at AND number < :bound ORDER BY cast_at LIMIT 1 OFFSET :size"
_JOINED = f"SELECT count(*), min(whole), CAST(group_concat(note, :separator) AS BLOB) {_BY_AGE}"
_JOINED_SAME = f"{_JOINED} AND cast_at = :at AND number > :number AND number < :end"
_JOINED_LATER = f"{_JOINED} AND cast_at > :at AND cast_at < :end AND number < :bound"
_FIRST_LATER = f"SELECT number {_BY_AGE} AND cast_at > :at AND number < :bound ORDER BY cast_at, number LIMIT 1"
# If the casts are in order, so are the rows: that saves one lookup for each.
_SCANNED = """
    SELECT count(*), min(whole), CAST(group_concat(note, :separator) AS BLOB), max(cast_at) FROM marks NOT INDEXED
    WHERE ballot = :ballot AND number >= :first AND number < :end
"""
_MIN_DENSITY = 4
"""Rows of all ballots that are scanned for one of this ballot, at most, before the index is used instead."""

JOINED_PAGE = 1_000
"""Notes that are joined between two returns to the event loop: some 90 KB, in half a millisecond."""
_MAX_UNJOINED = 64
"""Pages that are read as entries, after one that cannot be joined, before joining is tried again."""


class Reading:
    """Reads the entries of one ballot with numbers below a bound, oldest first."""

    def __init__(self, connection: sqlite3.Connection, ballot: int, is_in_order: bool, since: int, bound: int) -> None:
        self.ballot = ballot
        self._connection = connection
        self._position = (since, -1)
        self._bound = bound
        self._is_scanned = is_in_order
        self._kept: list[Row] = []

    def keep_replaced(self, row: Row) -> None:
        """Keep a row that is about to be replaced."""
        if row[1] < self._bound and row[:2] > self._position:
            heapq.heappush(self._kept, row)

    def __call__(self, size: int) -> list[Row]:
        # As one query, SQLite would scan all earlier rows of the same time again.
        since, number = self._position
        rows: list[Row] = self._connection.execute(
            _SAME_TIME, (self.ballot, since, number, self._bound, size)
        ).fetchall()
        if len(rows) < size:
            rows += self._connection.execute(_LATER, (self.ballot, since, self._bound, size - len(rows))).fetchall()
        if self._kept:
            rows = self._with_kept(rows, size)
        if rows:
            self._position = rows[-1][:2]
        return rows

    def join_notes(self, size: int, separator: bytes) -> tuple[int, bytes] | None:
        """Return how many entries the next page has, 0 at the end, and their joined notes.

        Returns `None` if they cannot be joined.
        """
        if self._kept:
            return None
        if self._is_scanned:
            return self._join_notes_by_number(size, separator)
        at, number = self._position
        params: dict[str, Any] = {"ballot": self.ballot, "bound": self._bound, "separator": separator.decode()}
        params |= {"at": at, "number": number, "size": size, "end": self._bound}
        if end := self._connection.execute(_END_OF_SAME, params).fetchone():
            params["end"] = end[0] + 1
        count, is_whole, text = self._connection.execute(_JOINED_SAME, params).fetchone()
        position: tuple[int, int] = (at, params["end"] - 1)
        if not end:
            params |= {"size": size - count, "end": NEVER}
            if end := self._connection.execute(_TIME_AFTER, params).fetchone():
                params["end"] = end[0]
            more, is_more_whole, more_text = self._connection.execute(_JOINED_LATER, params).fetchone()
            position = (params["end"], -1)
            if more:
                is_whole = is_more_whole and (not count or is_whole)
                text = text + separator + more_text if count else more_text
                count += more
        if count and not is_whole:
            return None
        self._position = position
        return (count, text) if count or not end else self.join_notes(size, separator)

    def _join_notes_by_number(self, size: int, separator: bytes) -> tuple[int, bytes] | None:
        """Join the notes of the next entries by scanning a range of numbers of all ballots.

        Requires that later casts have higher numbers.
        """
        at, number = self._position
        params: dict[str, Any] = {"ballot": self.ballot, "bound": self._bound, "at": at, "number": number, "size": 1}
        first = self._connection.execute(_END_OF_SAME, params).fetchone()
        first = first or self._connection.execute(_FIRST_LATER, params).fetchone()
        if first is None:
            return 0, b""
        end = min(first[0] + size, self._bound)
        params = {"ballot": self.ballot, "separator": separator.decode(), "first": first[0], "end": end}
        count, is_whole, text, latest = self._connection.execute(_SCANNED, params).fetchone()
        if not is_whole:
            return None
        self._position = (latest, end - 1)
        self._is_scanned = count * _MIN_DENSITY >= end - first[0]
        return count, text

    def _with_kept(self, rows: list[Row], size: int) -> list[Row]:
        until = rows[-1][:2] if len(rows) == size else (NEVER, NEVER)
        due: list[Row] = []
        while self._kept and self._kept[0][:2] <= until and len(due) < size:
            due.append(heapq.heappop(self._kept))
        # By number, because after a rollback a kept row is in the table too.
        together = sorted({row[1]: row for row in (*rows, *due) if row[:2] > self._position}.values())
        for row in together[size:]:
            heapq.heappush(self._kept, row)
        return together[:size]


class Readings(Tables):
    def __init__(self, namespace: Namespace, ballot_cache: BallotCache) -> None:
        super().__init__(namespace)
        self._ballot_cache = ballot_cache
        self.active: dict[int, list[Reading]] = {}
        """The readings in memory, by ballot."""

    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        await self._group_commit.wait_for_commit()
        async with self._open_readings(key, now, since) as readings:
            async for rows in merged_pages(readings, NEVER if limit is None else limit):
                yield _entries(rows)

    async def notes(
        self, key: Key, *, now: int, separator: bytes, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[bytes | Sequence[BallotEntry]]:
        await self._group_commit.wait_for_commit()
        left, unjoined = NEVER if limit is None else limit, 1
        async with self._open_readings(key, now, since) as readings:
            while left > 0:
                page = None
                if len(readings) == 1:
                    with engine_errors():
                        page = readings[0].join_notes(min(JOINED_PAGE, left), separator)
                if page is not None:
                    count, text = page
                    if not count:
                        return
                    left -= count
                    yield text
                    await asyncio.sleep(0)
                    continue
                most = min(left, unjoined * PAGE) if len(readings) == 1 else left
                unjoined = min(2 * unjoined, _MAX_UNJOINED)
                async for rows in merged_pages(readings, most):
                    left -= len(rows)
                    most -= len(rows)
                    yield _entries(rows)
                if most:
                    return

    def keep_replaced(self, ballot: int, voter: str, numbers: Sequence[int]) -> None:
        """Before the rows with these numbers are replaced, give a copy to each active reading of the ballot."""
        readings = self.active.get(ballot)
        if not readings:
            return
        for row in self._group_commit.connection.execute(_OF_VOTER, (ballot, voter)).fetchall():
            if row[1] in numbers:
                for reading in readings:
                    reading.keep_replaced(row)

    @asynccontextmanager
    async def _open_readings(self, key: Key, now: int, since: int) -> AsyncIterator[list[Reading]]:
        if self._group_commit.path is not None:
            async with self._group_commit.snapshot() as connection:
                with engine_errors():
                    readings = self._readings(connection, key, now, since, NEVER)
                yield readings
            return
        with engine_errors():
            self._ballot_cache.flush()  # of a group that began in between; its casts are below the bound
            readings = self._readings(self._group_commit.connection, key, now, since, self._namespace.upper_bound())
        for reading in readings:
            self.active.setdefault(reading.ballot, []).append(reading)
        try:
            yield readings
        finally:
            for reading in readings:
                others = self.active[reading.ballot]
                others.remove(reading)
                if not others:
                    del self.active[reading.ballot]

    def _readings(self, connection: sqlite3.Connection, key: Key, now: int, since: int, bound: int) -> list[Reading]:
        if key.channel is None:
            ballots = connection.execute(_ALL_CHANNELS, (*self._namespace.params_all_channels(key), now)).fetchall()
        else:
            ballots = connection.execute(_ONE, (*self._namespace.params(key), now)).fetchall()
        return [Reading(connection, ballot, bool(is_in_order), since, bound) for ballot, is_in_order in ballots]


def _entries(rows: Sequence[Row]) -> list[BallotEntry]:
    return [BallotEntry(voter, choice, times, at, note) for at, _, voter, choice, times, note in rows]
