"""Writes records (`engines/records.py`) into a namespace: all of them become visible in one step.

To replace everything, the records are written under the id of a hidden namespace in short transactions, while work on
the other data goes on. One more transaction gives that id to the namespace. If the process dies before, the next
opening removes the hidden namespace.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import Any, Final

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.records import Record
from emulator.storage.sqlite import table_list as tables
from emulator.storage.sqlite.ballot_cache import ADD_COUNT
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.pool_cache import SPEND, USE_LIST, SpentItems, chunks_of
from emulator.storage.sqlite.pools import ADD_MEMBER
from emulator.storage.sqlite.table_list import BY_KEY, Table

_STORED_IN: Final[dict[type[Record], Table]] = {
    types.DocumentRecord: tables.DOCUMENTS,
    types.BallotRecord: tables.BALLOTS,
    types.ItemRecord: tables.LOGS,
    types.ListRecord: tables.LISTS,
    types.PoolRecord: tables.POOLS,
    types.RosterRecord: tables.ROSTERS,
}
"""The table of the things of each type. Other types are the contents of these."""
_GOES_WITH: Final = {tables.LISTS: ("pool", tables.POOLS), tables.POOLS: ("list", tables.LISTS)}
"""The column with the id of the row that goes with one of these, and the table of that row."""


def clear(connection: sqlite3.Connection, space: int, records: Sequence[Record]) -> None:
    """Remove everything under the keys of these records. A pool goes with its list. `tidy` deletes the contents."""
    for record_type, key in dict.fromkeys((type(record), record[0]) for record in records):
        if table := _STORED_IN.get(record_type):
            column, other = _GOES_WITH.get(table, ("NULL", table))
            params = (space, key.kind, key.owner, key.name, key.user, key.channel)
            statement = f"SELECT id, {column} FROM {table.name} WHERE {BY_KEY}"
            for id, id_of_other in connection.execute(statement, params).fetchall():
                table.remove(connection, id)
                if id_of_other:
                    other.remove(connection, id_of_other)


_ENTRY = """
    INSERT INTO marks (number, ballot, voter, choice, times, cast_at, note, whole, slot)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
        (SELECT coalesce(max(slot) + 1, 0) FROM marks WHERE ballot = ?2 AND voter = ?3))
"""
_DROP_UNCOUNTED = "DELETE FROM tallies WHERE count = ? AND ballot = ?"
_SIZE = "UPDATE lists SET size = ? WHERE id = ?"
_HANDED_COUNT = "UPDATE pools SET handed = ? WHERE id = ?"

_Row = tuple[Any, ...]
_RowsOf = Callable[["RecordRows", Any], Iterator[_Row]]
_WRITERS: Final[dict[type[Record], tuple[str, _RowsOf]]] = {}
"""For each type of record, the statement that writes rows, and the method that makes these."""


def _writes(record_type: type[Record], statement: str) -> Callable[[_RowsOf], _RowsOf]:
    """Register a method in `_WRITERS` as the writer of one type of records."""

    def register(rows_of: _RowsOf) -> _RowsOf:
        _WRITERS[record_type] = statement, rows_of
        return rows_of

    return register


class RecordRows:
    """Writes checked records in the order of a dump. `finish`, called until it returns False, completes them."""

    def __init__(self, namespace: Namespace, space: int) -> None:
        self._connection = namespace.group_commit.connection
        self._next_number = namespace.next_number
        self._space = space
        self._ballots: dict[Key, int] = {}
        self._logs: dict[Key, int] = {}
        self._lists: dict[Key, int] = {}
        self._families: dict[Key, int] = {}
        self._rosters: dict[Key, int] = {}
        self._pools: dict[Key, list[int]] = {}
        """The ids of the pools of a key; the first is their root."""
        self._later: dict[str, dict[int, _Row]] = {
            each: {} for each in (_DROP_UNCOUNTED, _SIZE, USE_LIST, _HANDED_COUNT)
        }
        """The statements that complete what has contents. Each takes values, which are here by id, and then the id."""
        self._last_handed: tuple[int, str, int] = (0, "", 0)
        """Pool, user, and how many items the user has."""
        self._spent = SpentItems(namespace)

    def write(self, records: Sequence[Record]) -> None:
        for kind, some in groupby(records, type):
            statement, rows_of = _WRITERS[kind]
            self._execute_all(statement, list(rows_of(self, some)))

    def finish(self, most: int) -> bool:
        """Complete some of what has contents; return whether any was left to complete."""
        for statement, values in self._later.items():
            if values:
                self._execute_all(statement, [(*values.pop(id), id) for id in list(islice(values, most))])
                return True
        return False

    def _execute_all(self, statement: str, rows: Sequence[_Row]) -> None:
        self._connection.executemany(statement, rows)

    def _key_values(self, key: Key) -> _Row:
        return self._space, key.kind, key.owner, key.name, key.user, key.channel

    @_writes(types.DocumentRecord, tables.DOCUMENTS.insert)
    def _document_rows(self, records: Iterable[types.DocumentRecord]) -> Iterator[_Row]:
        for key, expires_at, value in records:
            yield *self._key_values(key), value, expires_at

    @_writes(types.BallotRecord, tables.BALLOTS.insert)
    def _ballot_rows(self, records: Iterable[types.BallotRecord]) -> Iterator[_Row]:
        for key, expires_at, definition, terms in records:
            self._ballots[key] = id = self._next_number()
            self._later[_DROP_UNCOUNTED][id] = (0,)
            yield id, *self._key_values(key), expires_at, definition, *terms

    @_writes(types.ChoiceRecord, f"{tables.TALLIES.insert} ON CONFLICT DO NOTHING")
    def _choice_rows(self, records: Iterable[types.ChoiceRecord]) -> Iterator[_Row]:
        for key, choice in records:
            yield self._ballots[key], choice, 0, self._next_number()

    @_writes(types.EntryRecord, _ENTRY)
    def _entry_rows(self, records: Iterable[types.EntryRecord]) -> Iterator[_Row]:
        counts = Counter[tuple[int, str]]()
        for key, (voter, choice, times, at, note), whole in records:
            ballot = self._ballots[key]
            counts[ballot, choice] += times
            yield self._next_number(), ballot, voter, choice, times, at, note, whole
        # A choice without a `ChoiceRecord` comes last.
        self._execute_all(ADD_COUNT, [(*each, count, self._next_number()) for each, count in counts.items()])

    @_writes(types.ItemRecord, tables.ITEMS.insert)
    def _item_rows(self, records: Iterable[types.ItemRecord]) -> Iterator[_Row]:
        for key, at, expires_at, value in records:
            if key not in self._logs:
                self._logs[key] = self._next_number()
                self._execute_all(tables.LOGS.insert, [(self._logs[key], *self._key_values(key))])
            yield self._next_number(), self._logs[key], self._space, at, expires_at, value

    @_writes(types.ListRecord, tables.LISTS.insert)
    def _list_rows(self, records: Iterable[types.ListRecord]) -> Iterator[_Row]:
        for key, expires_at in records:
            self._lists[key] = id = self._next_number()
            yield id, *self._key_values(key), expires_at

    @_writes(types.ListItemsRecord, tables.CHUNKS.insert)
    def _chunk_rows(self, records: Iterable[types.ListItemsRecord]) -> Iterator[_Row]:
        for key, items in records:
            id = self._lists[key]
            (size,) = self._later[_SIZE].get(id, (0,))
            for count, chunk in chunks_of(items):
                yield id, size, chunk
                size += count
            self._later[_SIZE][id] = (size,)

    @_writes(types.PoolRecord, tables.POOLS.insert)
    def _pool_rows(self, records: Iterable[types.PoolRecord]) -> Iterator[_Row]:
        for key, _, expires_at, source, note in records:
            id, list_id = self._next_number(), 0
            ids = self._pools.setdefault(key, [])
            ids.append(id)
            if source is not None:
                list_id = self._lists[source]
                self._later[USE_LIST][list_id] = (id, expires_at)
            yield id, ids[0], *self._key_values(key), expires_at, source is None, list_id, note

    @_writes(types.HandedRecord, tables.HANDED.insert)
    def _handed_rows(self, records: Iterable[types.HandedRecord]) -> Iterator[_Row]:
        for key, number, user, item in records:
            ids = self._pools[key]
            pool = ids[number - 1]
            nth = self._last_handed[2] + 1 if self._last_handed[:2] == (pool, user) else 1
            self._last_handed = (pool, user, nth)
            (ordinal,) = self._later[_HANDED_COUNT].get(pool, (0,))
            self._later[_HANDED_COUNT][pool] = (ordinal + 1,)
            yield pool, ordinal + 1, ids[0], item, user, nth

    @_writes(types.SpentRecord, SPEND)
    def _spent_rows(self, records: Iterable[types.SpentRecord]) -> Iterator[_Row]:
        for key, digest in records:
            if key not in self._families:
                self._families[key] = self._spent.family(key, space=self._space)
            yield self._families[key], bytes.fromhex(digest)

    @_writes(types.RosterRecord, tables.ROSTERS.insert)
    def _roster_rows(self, records: Iterable[types.RosterRecord]) -> Iterator[_Row]:
        for key, expires_at, note in records:
            self._rosters[key] = id = self._next_number()
            yield id, *self._key_values(key), expires_at, note, id

    @_writes(types.MemberRecord, ADD_MEMBER)
    def _member_rows(self, records: Iterable[types.MemberRecord]) -> Iterator[_Row]:
        for key, member in records:
            yield self._rosters[key], member


STEP = 250
"""Records that are written in one group commit."""
_COPIED = 100
"""Steps after which the write-ahead log is copied. Else it grows until a commit must copy all of it."""


class Load(Tables):
    def __init__(self, namespace: Namespace, copy_log: Callable[[], Awaitable[None]]) -> None:
        super().__init__(namespace)
        self._copy_log = copy_log

    async def __call__(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        if replace:
            await self._replace(pages)
        else:
            records = [record async for page in pages for record in page]
            await self._group_commit.write(self._merge, records)

    async def _replace(self, pages: AsyncIterator[Sequence[Record]]) -> None:
        space = await self._group_commit.write(self._namespace.begin_hidden)
        rows = RecordRows(self._namespace, space)
        steps = 0
        try:
            async for page in pages:
                for start in range(0, len(page), STEP):
                    await self._group_commit.write(rows.write, page[start : start + STEP])
                    steps += 1
                    if steps % _COPIED == 0:
                        await self._copy_log()
            while await self._group_commit.write(rows.finish, STEP):
                pass
            await self._group_commit.write(self._namespace.show_hidden, space)
        except BaseException:
            with suppress(EngineError):  # the next opening removes it too
                await self._group_commit.write(self._namespace.drop_hidden, space)
            raise

    def _merge(self, records: Sequence[Record]) -> None:
        self._namespace.drop_cached()
        clear(self._group_commit.connection, self._namespace.id, records)
        rows = RecordRows(self._namespace, self._namespace.id)
        rows.write(records)
        while rows.finish(STEP):
            pass
