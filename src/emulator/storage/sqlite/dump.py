"""Reads everything in a namespace as records (`engines/records.py`), from a copy that stays as it is.

A file is read in a snapshot on a second connection. Data in memory is copied to a temporary database first, which
SQLite keeps on disk: that is one step, some hundred ms for a million votes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from itertools import islice
from typing import Any, Final

from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.records import ITEMS_PER_RECORD, Record
from emulator.storage.shapes import BallotEntry
from emulator.storage.sqlite.connection import engine_errors, finished_in_thread
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.table_list import KEY_COLUMNS, TERMS, key_columns, terms_of

PAGE: Final = 100
"""Records between two returns to the event loop."""

_CACHE: Final = "PRAGMA cache_size = -4096"
"""4 MiB: each page is read once, so a larger cache would only be memory."""
_BY_KEY: Final = f"ORDER BY {KEY_COLUMNS}"
_ALIVE: Final = "space = :space AND +expires_at > :now"
_DOCUMENTS = f"SELECT {KEY_COLUMNS}, expires_at, value FROM documents WHERE {_ALIVE} {_BY_KEY}"
_BALLOTS = f"SELECT {KEY_COLUMNS}, expires_at, definition, {TERMS} FROM ballots WHERE {_ALIVE} {_BY_KEY}"
# Groups are read one at a time: to sort all casts at once would take a copy of them.
_GROUP: Final = "shelf, owner, name, holder"
_IN_GROUP: Final = "shelf = :shelf AND owner = :owner AND name = :name AND holder = :holder"
_GROUPS_OF_BALLOTS = f"SELECT DISTINCT {_GROUP} FROM ballots WHERE {_ALIVE} ORDER BY {_GROUP}"
_CHOICES = f"""
    SELECT place, choice FROM ballots CROSS JOIN tallies ON tallies.ballot = ballots.id
    WHERE {_ALIVE} AND {_IN_GROUP} ORDER BY since
"""
_ENTRIES = f"""
    SELECT place, voter, choice, times, cast_at, note, whole
    FROM ballots CROSS JOIN marks INDEXED BY marks_by_age ON marks.ballot = ballots.id
    WHERE {_ALIVE} AND {_IN_GROUP} ORDER BY number
"""
_GROUPS_OF_LOGS = f"SELECT DISTINCT {_GROUP} FROM logs WHERE space = :space ORDER BY {_GROUP}"
_ITEMS = f"""
    SELECT place, at, expires_at, value FROM logs CROSS JOIN items INDEXED BY items_by_age ON items.log = logs.id
    WHERE logs.space = :space AND {_IN_GROUP} AND +expires_at > :now ORDER BY number
"""
_LISTS = f"SELECT {KEY_COLUMNS}, expires_at FROM lists WHERE {_ALIVE} {_BY_KEY}"
_POSITIONS = f"""
    SELECT {KEY_COLUMNS}, id, coalesce((SELECT position FROM pools WHERE pools.id = lists.pool), 0)
    FROM lists WHERE {_ALIVE} {_BY_KEY}
"""
_CHUNKS = "SELECT first, items FROM chunks WHERE list = ? AND first > ? ORDER BY first"
_POOLS = f"""
    SELECT {key_columns("pools")}, pools.expires_at, closed, note, pools.id, {key_columns("lists")}
    FROM pools LEFT JOIN lists ON lists.id = pools.list
    WHERE pools.space = :space AND +pools.expires_at > :now ORDER BY 1, 2, 3, 4, 5, pools.id
"""
_HANDED = "SELECT holder, item FROM handed WHERE pool = ? ORDER BY holder, nth"
_SPENT = """
    SELECT shelf, owner, '', place, holder, lower(hex(digest)) FROM families CROSS JOIN spent ON family = families.id
    WHERE space = :space ORDER BY shelf, owner, place, holder, digest
"""
_ROSTERS = f"""
    SELECT {KEY_COLUMNS}, expires_at, note FROM rosters WHERE {_ALIVE} ORDER BY shelf, owner, place, holder, number
"""
_MEMBERS = f"""
    SELECT {KEY_COLUMNS}, member FROM rosters CROSS JOIN members ON roster = id
    WHERE {_ALIVE} ORDER BY shelf, owner, place, holder, name, member
"""


class Dump(Tables):
    async def __call__(self, *, now: int) -> AsyncIterator[Sequence[Record]]:
        async with self._frozen_connection() as connection:
            with engine_errors():
                connection.execute(_CACHE)
                records = _Reading(connection, self._namespace.stored_in(connection), now).records()
                # SQLite may sort a million rows first, so the event loop must not wait for a page.
                while page := await finished_in_thread(lambda: list(islice(records, PAGE)), connection.interrupt):
                    yield page

    @asynccontextmanager
    async def _frozen_connection(self) -> AsyncIterator[sqlite3.Connection]:
        """Open a connection to the currently committed data."""
        self._group_commit.commit_now()  # not later: writers may never pause
        if self._group_commit.path is not None:
            async with self._group_commit.snapshot(check_same_thread=False) as connection:
                yield connection
            return
        with closing(sqlite3.connect("", isolation_level=None, check_same_thread=False)) as copy:
            with engine_errors():
                copy.execute("PRAGMA synchronous = OFF")
                self._group_commit.connection.backup(copy)
            yield copy


class _Reading:
    """Reads all records of one namespace from one connection."""

    def __init__(self, connection: sqlite3.Connection, space: int, now: int) -> None:
        self._execute = connection.execute
        self._params = {"space": space, "now": now}

    def records(self) -> Iterator[Record]:
        yield from self._keyed_records(types.DocumentRecord, _DOCUMENTS)
        for row in self._rows(_BALLOTS):
            yield types.BallotRecord(Key(*row[:5]), row[5], row[6], terms_of(row[7:]))
        for key, choice in self._grouped_rows(_GROUPS_OF_BALLOTS, _CHOICES):
            yield types.ChoiceRecord(key, choice)
        for key, voter, choice, times, at, note, whole in self._grouped_rows(_GROUPS_OF_BALLOTS, _ENTRIES):
            yield types.EntryRecord(key, BallotEntry(voter, choice, times, at, note), bool(whole))
        for key, at, expires_at, value in self._grouped_rows(_GROUPS_OF_LOGS, _ITEMS):
            yield types.ItemRecord(key, at, expires_at, value)
        yield from self._pools()
        yield from self._keyed_records(types.RosterRecord, _ROSTERS)
        yield from self._keyed_records(types.MemberRecord, _MEMBERS)

    def _pools(self) -> Iterator[Record]:
        yield from self._keyed_records(types.ListRecord, _LISTS)
        for *key, id, position in self._execute(_POSITIONS, self._params).fetchall():
            for items in self._items(id, position):
                yield types.ListItemsRecord(Key(*key), items)
        ids = []
        number, last = 0, None
        for row in self._rows(_POOLS):
            key_, expires_at, closed, note, id, source = Key(*row[:5]), *row[5:9], row[9:]
            number, last = (number + 1 if key_ == last else 1), key_
            ids.append((key_, number, id))
            yield types.PoolRecord(key_, number, expires_at, None if closed else Key(*source), b"" if closed else note)
        for key_, number, id in ids:
            for user, item in self._execute(_HANDED, (id,)):
                yield types.HandedRecord(key_, number, user, item)
        yield from self._keyed_records(types.SpentRecord, _SPENT)

    def _items(self, id: int, position: int) -> Iterator[tuple[str, ...]]:
        """The items of a list from this position on, in as many as one record holds."""
        items: list[str] = []
        first = self._execute("SELECT max(first) FROM chunks WHERE list = ? AND first <= ?", (id, position)).fetchone()
        for start, packed in self._execute(_CHUNKS, (id, (first[0] or 0) - 1)):
            some = packed.decode().split("\0")
            items += some[max(0, position - start) :]
            while len(items) >= ITEMS_PER_RECORD:
                yield tuple(items[:ITEMS_PER_RECORD])
                del items[:ITEMS_PER_RECORD]
        if items:
            yield tuple(items)

    def _keyed_records(self, record: Callable[..., Record], statement: str) -> Iterator[Record]:
        """The rows of `statement` as records: the columns of a key, then the other fields in their order."""
        return (record(Key(*row[:5]), *row[5:]) for row in self._rows(statement))

    def _rows(self, statement: str, **params: object) -> Iterator[tuple[Any, ...]]:
        return iter(self._execute(statement, self._params | params))

    def _grouped_rows(self, groups: str, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of `statement` for each group, with the key in place of the channel."""
        for shelf, owner, name, holder in self._execute(groups, self._params).fetchall():
            for place, *row in self._rows(statement, shelf=shelf, owner=owner, name=name, holder=holder):
                yield Key(shelf, owner, name, place, holder), *row
