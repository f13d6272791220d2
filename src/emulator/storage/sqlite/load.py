"""Writes records (`storage/records.py`) into a namespace: all of them become visible in one step.

To replace everything, the records are written under the id of a hidden namespace in short transactions, while work on
the other data goes on. One more transaction gives that id to the namespace. If the process dies before, the next
opening removes the hidden namespace.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.records import Record
from emulator.storage.sqlite import tables
from emulator.storage.sqlite.ballot_cache import ADD_COUNT
from emulator.storage.sqlite.lists import SET_EXPIRY, Lists, split_chunks
from emulator.storage.sqlite.namespace import HIDDEN, Namespace, Tables, write_operation
from emulator.storage.sqlite.pools import HAND_OUT
from emulator.storage.sqlite.tables import BY_KEY, THING_TABLES, Table

_PAIRED_ROWS = {
    tables.LISTS: ("(SELECT id FROM pools WHERE list = lists.id)", tables.POOLS),
    tables.POOLS: ("list", tables.LISTS),
}
"""The id of the row that goes with one of these, and the table of that row."""


_ADD_ENTRY = f"{tables.ENTRIES.insert} ON CONFLICT (ballot, voter, choice) DO UPDATE SET times = times + excluded.times"
_ADD_SPENT = f"{tables.SPENT.insert} ON CONFLICT DO NOTHING"
_ADD_MEMBER = f"{tables.MEMBERS.insert} ON CONFLICT DO NOTHING"


class RecordWriter(Lists):
    """Writes checked records in the order of a dump."""

    def __init__(self, namespace: Namespace, space: int) -> None:
        super().__init__(namespace)
        self._space = space
        self._ids: dict[tuple[Table, Key, int], int] = {}
        """The ids of what has contents: by table and key, and for a pool its number."""
        self._since: dict[tuple[int, str], int] = {}
        """By ballot and choice: a number, in the order in which ties are broken."""

    def write(self, records: Sequence[Record]) -> None:
        for record in records:
            self._write_one(record)

    def _write_one(self, record: Record) -> None:
        match record:
            case types.DocumentRecord(key, expires_at, value):
                self._execute(tables.DOCUMENTS.insert, None, self._space, *key, expires_at, value)
            case types.BallotRecord(key, expires_at, definition, terms):
                self._insert(tables.BALLOTS, key, expires_at, definition, *terms)
            case types.ListRecord(key, expires_at):
                self._insert(tables.LISTS, key, expires_at)
            case types.PoolRecord(key, number, expires_at, source, note):
                list_id = None if source is None else self._ids[tables.LISTS, source, 0]
                self._execute(SET_EXPIRY, expires_at, list_id)
                family = self._family_of(self._space, key)
                self._insert(tables.POOLS, key, expires_at, list_id, note, family, number=number)
            case types.RosterRecord(key, expires_at, note):
                self._insert(tables.ROSTERS, key, expires_at, note, self.group_commit.next_number())
            case _:
                self._write_content(record)

    def _write_content(self, record: Record) -> None:
        number = self.group_commit.next_number()
        match record:
            case types.ChoiceRecord(key, choice):
                self._since[self._ids[tables.BALLOTS, key, 0], choice] = number
            case types.EntryRecord(key, entry):
                ballot = self._ids[tables.BALLOTS, key, 0]
                self._execute(_ADD_ENTRY, number, ballot, *entry)
                since = self._since.get((ballot, entry.choice), number)  # without a `ChoiceRecord`, it comes last
                self._execute(ADD_COUNT, ballot, entry.choice, entry.times, since)
            case types.ItemRecord(key, at, expires_at, value):
                log = self._ids.get((tables.LOGS, key, 0)) or self._insert(tables.LOGS, key)
                self._execute(tables.ITEMS.insert, number, log, self._space, at, expires_at, value)
            case types.ListItemsRecord(key, items):
                self._append_chunks(self._ids[tables.LISTS, key, 0], split_chunks(items))
            case types.HandedRecord(key, pool, user, item):
                self._execute(HAND_OUT, self._ids[tables.POOLS, key, pool], user, item)
            case types.SpentRecord(key, digest):
                self._execute(_ADD_SPENT, self._family_of(self._space, key), bytes.fromhex(digest))
            case types.MemberRecord(key, member):
                self._execute(_ADD_MEMBER, self._ids[tables.ROSTERS, key, 0], member)

    def _insert(self, table: Table, key: Key, *values: object, number: int = 0) -> int:
        """Add the row of a thing under a new id, which is returned."""
        self._ids[table, key, number] = id = self.group_commit.next_number()
        self._execute(table.insert, id, self._space, *key, *values)
        return id


_COPY_AFTER = 100
"""Pages after which the write-ahead log is copied. Else it grows until a commit must copy all of it."""


class SqliteLoad(Tables):
    """The part of an engine that writes records."""

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._hidden = f"{namespace.name}{HIDDEN}loading"

    async def load(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        if replace:
            await self._replace(pages)
        else:
            await self._merge([record async for page in pages for record in page])

    async def _replace(self, pages: AsyncIterator[Sequence[Record]]) -> None:
        space = await self.group_commit.write(self._namespace.assign_id, self._hidden)
        rows, written = RecordWriter(self._namespace, space), 0
        try:
            async for page in pages:
                await self.group_commit.write(rows.write, page)
                written += 1
                if written % _COPY_AFTER == 0:
                    await self.group_commit.copy_log_now()
            await self._show_loaded(space)
        except BaseException:
            with suppress(EngineError):  # the next opening removes it too
                await self._give_up(space)
            raise

    @write_operation
    def _show_loaded(self, space: int) -> None:
        """Give the namespace the id under the hidden name, instead of its own. `tidy` deletes the old rows.

        Raises `EngineError` if another load of the namespace has removed what this one wrote.
        """
        if self._namespace.find_id(self._hidden) != space:  # now: an error after the first row would roll back others
            raise EngineError("another load of the same namespace began meanwhile; nothing was replaced")
        self.group_commit.flush_caches()
        self._namespace.rename(self._hidden, self._namespace.name)

    @write_operation
    def _give_up(self, space: int) -> None:
        if self._namespace.find_id(self._hidden) == space:
            self._namespace.remove(self._hidden)

    @write_operation
    def _merge(self, records: Sequence[Record]) -> None:
        self.group_commit.flush_caches()
        self._remove_replaced(records)
        RecordWriter(self._namespace, self._namespace.id).write(records)

    def _remove_replaced(self, records: Sequence[Record]) -> None:
        """Remove everything under the keys of these records. A pool goes with its list. `tidy` deletes the contents."""
        tables_by_record = {table.record: table for table in THING_TABLES}
        things = dict.fromkeys((tables_by_record.get(type(record)), record[0]) for record in records)
        for table, key in things:
            if table is None:
                continue
            id_of_other, other = _PAIRED_ROWS.get(table, ("NULL", table))
            rows = self._execute(f"SELECT id, {id_of_other} FROM {table.name} WHERE {BY_KEY}", self._namespace.id, *key)
            for id, goes_with in rows.fetchall():
                self._remove_row(table, id)
                if goes_with is not None:
                    self._remove_row(other, goes_with)
