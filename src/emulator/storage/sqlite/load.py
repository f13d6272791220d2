"""Writes records (`storage/records.py`) into a namespace: all of them become visible in one step.

To replace everything, the records are written under the id of a hidden namespace in short transactions, while work on
the other data goes on. One more transaction gives that id to the namespace. If the process dies before, the next
opening removes the hidden namespace.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.records import Record
from emulator.storage.sqlite import tables
from emulator.storage.sqlite.ballot_cache import ADD_COUNT
from emulator.storage.sqlite.lists import Lists, chunks_of
from emulator.storage.sqlite.namespace import HIDDEN, Namespace, Tables, writes
from emulator.storage.sqlite.pools import HAND_OUT
from emulator.storage.sqlite.tables import BY_KEY, THINGS

_GOES_WITH: Final = {
    tables.LISTS: ("(SELECT id FROM pools WHERE list = lists.id)", tables.POOLS),
    tables.POOLS: ("list", tables.LISTS),
}
"""The id of the row that goes with one of these, and the table of that row."""


def _clear(connection: sqlite3.Connection, space: int, records: Sequence[Record]) -> None:
    """Remove everything under the keys of these records. A pool goes with its list. `tidy` deletes the contents."""
    things = {table.record: table for table in THINGS}
    for kind, key in dict.fromkeys((type(record), record[0]) for record in records if type(record) in things):
        table = things[kind]
        id_of_other, other = _GOES_WITH.get(table, ("NULL", table))
        rows = connection.execute(f"SELECT id, {id_of_other} FROM {table.name} WHERE {BY_KEY}", (space, *key))
        for id, goes_with in rows.fetchall():
            table.remove(connection, id)
            if goes_with is not None:
                other.remove(connection, goes_with)


_ENTRY = f"{tables.ENTRIES.insert} ON CONFLICT (ballot, voter, choice) DO UPDATE SET times = times + excluded.times"
_DROP_UNCOUNTED = "DELETE FROM tallies WHERE count = 0 AND ballot = ?"
_SET_EXPIRY = "UPDATE lists SET expires_at = ? WHERE id = ?"

_Row = tuple[Any, ...]


class RecordRows:
    """Writes checked records in the order of a dump. `finish`, called until it returns False, completes them."""

    def __init__(self, namespace: Namespace, space: int) -> None:
        self._connection = namespace.group_commit.connection
        self._next_number = namespace.group_commit.next_number
        self._space = space
        self._lists = Lists(namespace)
        self._ids: dict[tuple[type[Record], Key, int], int] = {}
        """The ids of what has contents: by type and key, and for a pool its number."""
        self._uncounted: list[int] = []
        """The ballots whose choices may have no casts."""
        self._counts = Counter[tuple[int, str]]()
        """The casts of the records that are being written, by ballot and choice."""
        self._sizes = Counter[int]()
        """The items of each list."""
        self._rows: dict[type[Record], tuple[str, Callable[[Any], Iterator[_Row]]]] = {
            types.DocumentRecord: (tables.DOCUMENTS.insert, self._document),
            types.BallotRecord: (tables.BALLOTS.insert, self._ballot),
            types.ChoiceRecord: (f"{tables.TALLIES.insert} ON CONFLICT DO NOTHING", self._choice),
            types.EntryRecord: (_ENTRY, self._entry),
            types.ItemRecord: (tables.ITEMS.insert, self._item),
            types.ListRecord: (tables.LISTS.insert, self._list),
            types.ListItemsRecord: (tables.CHUNKS.insert, self._chunks),
            types.PoolRecord: (tables.POOLS.insert, self._pool),
            types.HandedRecord: (HAND_OUT, self._handed),
            types.SpentRecord: (f"{tables.SPENT.insert} ON CONFLICT DO NOTHING", self._spent_item),
            types.RosterRecord: (tables.ROSTERS.insert, self._roster),
            types.MemberRecord: (f"{tables.MEMBERS.insert} ON CONFLICT DO NOTHING", self._member),
        }
        """For each type of record, the statement that writes a row, and the method that makes rows."""

    def write(self, records: Sequence[Record]) -> None:
        for kind, some in groupby(records, type):
            statement, rows_of = self._rows[kind]
            self._connection.executemany(statement, [row for record in some for row in rows_of(record)])
        # A choice without a `ChoiceRecord` comes last.
        counts = [(*each, count, self._next_number()) for each, count in self._counts.items()]
        self._connection.executemany(ADD_COUNT, counts)
        self._counts.clear()

    def finish(self, most: int) -> bool:
        """Complete some ballots; return whether any was left to complete."""
        some, self._uncounted = self._uncounted[:most], self._uncounted[most:]
        self._connection.executemany(_DROP_UNCOUNTED, [(ballot,) for ballot in some])
        return bool(some)

    def _new_id(self, kind: type[Record], key: Key, number: int = 0) -> int:
        self._ids[kind, key, number] = id = self._next_number()
        return id

    def _family(self, key: Key) -> int:
        place = types.SpentRecord, key, 0
        if place not in self._ids:
            self._ids[place] = self._lists.family(self._space, key)
        return self._ids[place]

    def _document(self, record: types.DocumentRecord) -> Iterator[_Row]:
        key, expires_at, value = record
        yield None, self._space, *key, expires_at, value

    def _ballot(self, record: types.BallotRecord) -> Iterator[_Row]:
        key, expires_at, definition, terms = record
        id = self._new_id(types.BallotRecord, key)
        self._uncounted.append(id)
        yield id, self._space, *key, expires_at, definition, *terms

    def _choice(self, record: types.ChoiceRecord) -> Iterator[_Row]:
        yield self._ids[types.BallotRecord, record.ballot, 0], record.choice, 0, self._next_number()

    def _entry(self, record: types.EntryRecord) -> Iterator[_Row]:
        key, (voter, choice, times, at, note) = record
        ballot, number = self._ids[types.BallotRecord, key, 0], self._next_number()
        self._counts[ballot, choice] += times
        yield number, ballot, voter, choice, times, at, note

    def _item(self, record: types.ItemRecord) -> Iterator[_Row]:
        key, at, expires_at, value = record
        log = self._ids.get((types.ItemRecord, key, 0))
        if log is None:
            log = self._new_id(types.ItemRecord, key)
            self._connection.execute(tables.LOGS.insert, (log, self._space, *key))
        yield self._next_number(), log, self._space, at, expires_at, value

    def _list(self, record: types.ListRecord) -> Iterator[_Row]:
        yield self._new_id(types.ListRecord, record.key), self._space, *record.key, record.expires_at

    def _chunks(self, record: types.ListItemsRecord) -> Iterator[_Row]:
        id = self._ids[types.ListRecord, record.key, 0]
        for count, chunk in chunks_of(record.items):
            self._sizes[id] += count
            yield id, self._sizes[id], chunk

    def _pool(self, record: types.PoolRecord) -> Iterator[_Row]:
        key, number, expires_at, source, note = record
        list_id = None if source is None else self._ids[types.ListRecord, source, 0]
        if list_id is not None:
            self._connection.execute(_SET_EXPIRY, (expires_at, list_id))
        id = self._new_id(types.PoolRecord, key, number)
        yield id, self._space, *key, expires_at, list_id, note, self._family(key._replace(name=""))

    def _handed(self, record: types.HandedRecord) -> Iterator[_Row]:
        yield self._ids[types.PoolRecord, record.pool, record.number], record.user, record.item

    def _spent_item(self, record: types.SpentRecord) -> Iterator[_Row]:
        yield self._family(record.family), bytes.fromhex(record.digest)

    def _roster(self, record: types.RosterRecord) -> Iterator[_Row]:
        key, expires_at, note = record
        id = self._new_id(types.RosterRecord, key)
        yield id, self._space, *key, expires_at, note, id

    def _member(self, record: types.MemberRecord) -> Iterator[_Row]:
        yield self._ids[types.RosterRecord, record.roster, 0], record.member


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
            await self._merge(records)

    async def _replace(self, pages: AsyncIterator[Sequence[Record]]) -> None:
        hidden = f"{self._namespace.name}{HIDDEN}loading"
        space = await self._group_commit.write(self._namespace.renew, hidden)
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
            await self._show(hidden, space)
        except BaseException:
            with suppress(EngineError):  # the next opening removes it too
                await self._give_up(hidden, space)
            raise

    @writes
    def _show(self, hidden: str, space: int) -> None:
        """Give the namespace the id under the hidden name, instead of its own. `tidy` deletes the old rows.

        Raises `EngineError` if another load of the namespace has removed what this one wrote.
        """
        if self._namespace.find(hidden) != space:  # now: an error after the first row would roll back others' writes
            raise EngineError("another load of the same namespace began meanwhile; nothing was replaced")
        self._group_commit.forget_read()
        self._namespace.rename(hidden, self._namespace.name)

    @writes
    def _give_up(self, hidden: str, space: int) -> None:
        if self._namespace.find(hidden) == space:
            self._namespace.remove(hidden)

    @writes
    def _merge(self, records: Sequence[Record]) -> None:
        self._group_commit.forget_read()
        _clear(self._group_commit.connection, self._namespace.id, records)
        rows = RecordRows(self._namespace, self._namespace.id)
        rows.write(records)
        while rows.finish(STEP):
            pass
