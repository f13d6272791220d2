"""Writes records (`engines/records.py`) into a namespace: all of them become visible in one step.

To replace everything, the records are written under the id of a hidden namespace in short transactions, while work on
the other data goes on. One more transaction gives that id to the namespace. If the process dies before, the next
opening by a service that is alone removes the hidden namespace.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import Any, Final

from emulator.engines.base import NEVER, Key
from emulator.engines.record_checks import checked
from emulator.engines.records import (
    BallotRecord,
    ChoiceRecord,
    DocumentRecord,
    EntryRecord,
    HandedRecord,
    ItemRecord,
    ListItemsRecord,
    ListRecord,
    MemberRecord,
    PoolRecord,
    Record,
    RosterRecord,
    SpentRecord,
)
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import BY_KEY, NamespaceIds, Tables
from emulator.engines.sqlite.rewards.pool_cache import SpentItems, packed
from emulator.engines.sqlite.rewards.rosters import ROOT
from emulator.engines.sqlite.table_list import BALLOTS, LISTS, POOLS, ROSTERS
from emulator.errors import EngineError


def clear(connection: sqlite3.Connection, space: int, records: Sequence[Record]) -> None:
    """Remove everything under the keys of these records. A pool goes with its list. `tidy` deletes the contents."""
    for record_type, key in dict.fromkeys((type(record), record[0]) for record in records):
        if record_type in _STORED_IN:
            columns, table, remove = _STORED_IN[record_type]
            params = (space, key.kind, key.owner, key.name, key.user, key.channel)
            for row in connection.execute(f"SELECT {columns} FROM {table} WHERE {BY_KEY}", params).fetchall():
                remove(connection, *row)


def _remove_document(connection: sqlite3.Connection, id: int) -> None:
    connection.execute("DELETE FROM documents WHERE id = ?", (id,))


def _remove_log(connection: sqlite3.Connection, id: int) -> None:
    connection.execute("DELETE FROM items WHERE log = ?", (id,))
    connection.execute("DELETE FROM logs WHERE id = ?", (id,))


def _remove_list(connection: sqlite3.Connection, id: int, pool: int | None) -> None:
    if pool:
        POOLS.bury(connection, pool)
    LISTS.bury(connection, id)


def _remove_pool(connection: sqlite3.Connection, id: int, list_id: int) -> None:
    POOLS.bury(connection, id)
    if list_id:
        LISTS.bury(connection, list_id)


_STORED_IN: Final[Mapping[type[Record], tuple[str, str, Callable[..., None]]]] = {
    DocumentRecord: ("id", "documents", _remove_document),
    BallotRecord: ("id", "ballots", BALLOTS.bury),
    ItemRecord: ("id", "logs", _remove_log),
    ListRecord: ("id, pool", "lists", _remove_list),
    PoolRecord: ("id, list", "pools", _remove_pool),
    RosterRecord: ("id, root", "rosters", ROSTERS.bury),
}
"""The columns and the table of each type, and what removes a row. Other types are the contents of these."""


_KEYED = "space, shelf, owner, name, holder, place"
_SEVEN = ", ".join("?" * 7)
_DOCUMENT = f"INSERT INTO documents ({_KEYED}, expires_at, value) VALUES ({_SEVEN}, ?)"
_BALLOT = f"""
    INSERT INTO ballots (id, {_KEYED}, expires_at, definition,
        opens_at, closes_at, disabled, known_voters_only, per_voter, per_choice, choices)
    VALUES ({_SEVEN}, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_LATEST = "UPDATE ballots SET latest = ? WHERE id = ?"
_CHOICE = "INSERT OR IGNORE INTO tallies (ballot, choice, count, since) VALUES (?, ?, 0, ?)"
_COUNT = """
    INSERT INTO tallies (ballot, choice, count, since) VALUES (?, ?, ?, ?)
    ON CONFLICT (ballot, choice) DO UPDATE SET count = count + excluded.count
"""
_DROP_UNCOUNTED = "DELETE FROM tallies WHERE ballot = ? AND count = 0"
_ENTRY = """
    INSERT INTO marks (number, ballot, voter, choice, times, cast_at, note, whole, slot)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
        (SELECT coalesce(max(slot) + 1, 0) FROM marks WHERE ballot = ?2 AND voter = ?3))
"""
_LOG = f"INSERT INTO logs (id, {_KEYED}) VALUES ({_SEVEN})"
_ITEM = "INSERT INTO items (number, log, space, at, expires_at, value) VALUES (?, ?, ?, ?, ?, ?)"
_LIST = f"INSERT INTO lists (id, {_KEYED}, expires_at) VALUES ({_SEVEN}, ?)"
_CHUNK = "INSERT INTO chunks (list, first, items) VALUES (?, ?, ?)"
_SIZE = "UPDATE lists SET size = ? WHERE id = ?"
_USE = "UPDATE lists SET pool = ?, expires_at = ? WHERE id = ?"
_POOL = f"""
    INSERT INTO pools (id, root, {_KEYED}, expires_at, closed, list, note) VALUES ({_SEVEN}, ?, ?, ?, ?, ?)
"""
_HANDED = "INSERT INTO handed (pool, ordinal, root, item, holder, nth) VALUES (?, ?, ?, ?, ?, ?)"
_HANDED_COUNT = "UPDATE pools SET handed = ? WHERE id = ?"
_SPENT = "INSERT OR IGNORE INTO spent (family, digest) VALUES (?, ?)"
_ROSTER = f"INSERT INTO rosters (id, root, {_KEYED}, expires_at) VALUES ({_SEVEN}, ?, ?)"
_MEMBER = "INSERT OR IGNORE INTO members (root, member, roster) VALUES (?, ?, ?)"

MAX_COUNTED = 5_000
"""Choices whose counts are added up before they are written."""


class RecordRows:
    """Writes checked records in the order of a dump. `finish`, called until it returns False, completes them.

    It keeps the ids of what has contents: ballots, logs, lists, pools and rosters.
    """

    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, space: int) -> None:
        self._group_commit = group_commit
        self._next_number = namespace.next_number
        self._space = space
        self._ballots: dict[Key, int] = {}
        self._latest: dict[int, int] = {}
        self._counts: dict[tuple[int, str], int] = {}
        self._logs: dict[Key, int] = {}
        self._lists: dict[Key, list[int]] = {}
        """Id and size."""
        self._pools: dict[Key, list[int]] = {}
        """The ids of the pools of a key; the first is their root."""
        self._handed: dict[int, int] = {}
        self._last_handed: tuple[int, str, int] = (0, "", 0)
        """Pool, user, and how many items the user has."""
        self._spent = SpentItems(group_commit, namespace)
        self._families: dict[Key, int] = {}
        self._rosters: dict[Key, tuple[int, int]] = {}
        """Id and root."""

    def write(self, records: Sequence[Record]) -> None:
        for kind, some in groupby(records, type):
            _WRITERS[kind](self, some)

    def finish(self, most: int) -> bool:
        """Write some of what was added up; return whether there was any."""
        if self._counts:
            self._write_counts(most)
            return True
        if self._latest:
            ids = list(islice(self._latest, most))
            self._execute_all(_LATEST, [(self._latest.pop(id), id) for id in ids])
            self._execute_all(_DROP_UNCOUNTED, [(id,) for id in ids])
            return True
        if self._handed:
            ids = list(islice(self._handed, most))
            self._execute_all(_HANDED_COUNT, [(self._handed.pop(id), id) for id in ids])
            return True
        return False

    def _execute_all(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        self._group_commit.connection.executemany(statement, rows)

    def _keyed(self, key: Key) -> tuple[int, str, str, str, str, str | None]:
        return self._space, key.kind, key.owner, key.name, key.user, key.channel

    def _write_documents(self, records: Iterable[DocumentRecord]) -> None:
        self._execute_all(_DOCUMENT, [(*self._keyed(key), expires_at, value) for key, expires_at, value in records])

    def _write_ballots(self, records: Iterable[BallotRecord]) -> None:
        rows = []
        for key, expires_at, definition, terms in records:
            self._ballots[key] = id = self._next_number()
            self._latest[id] = 0
            rows.append((id, *self._keyed(key), expires_at, definition, *terms))
        self._execute_all(_BALLOT, rows)

    def _write_choices(self, records: Iterable[ChoiceRecord]) -> None:
        self._execute_all(_CHOICE, [(self._ballots[key], choice, self._next_number()) for key, choice in records])

    def _write_entries(self, records: Iterable[EntryRecord]) -> None:
        rows = []
        for key, (voter, choice, times, at, note), whole in records:
            ballot = self._ballots[key]
            rows.append((self._next_number(), ballot, voter, choice, times, at, note, whole))
            self._counts[ballot, choice] = self._counts.get((ballot, choice), 0) + times
            self._latest[ballot] = at if at >= self._latest[ballot] else NEVER
        self._execute_all(_ENTRY, rows)
        while len(self._counts) > MAX_COUNTED:
            self._write_counts(MAX_COUNTED)

    def _write_counts(self, most: int) -> None:
        """Write counts. A choice without a `ChoiceRecord` comes after all others."""
        chosen = list(islice(self._counts, most))
        self._execute_all(_COUNT, [(*each, self._counts.pop(each), self._next_number()) for each in chosen])

    def _write_items(self, records: Iterable[ItemRecord]) -> None:
        rows = []
        for key, at, expires_at, value in records:
            log = self._logs.get(key)
            if log is None:
                log = self._logs[key] = self._next_number()
                self._group_commit.connection.execute(_LOG, (log, *self._keyed(key)))
            rows.append((self._next_number(), log, self._space, at, expires_at, value))
        self._execute_all(_ITEM, rows)

    def _write_lists(self, records: Iterable[ListRecord]) -> None:
        rows = []
        for key, expires_at in records:
            id = self._next_number()
            self._lists[key] = [id, 0]
            rows.append((id, *self._keyed(key), expires_at))
        self._execute_all(_LIST, rows)

    def _write_list_items(self, records: Iterable[ListItemsRecord]) -> None:
        rows, grown = [], {}
        for key, items in records:
            found = self._lists[key]
            for count, chunk in packed(items):
                rows.append((found[0], found[1], chunk))
                found[1] += count
            grown[found[0]] = found[1]
        self._execute_all(_CHUNK, rows)
        self._execute_all(_SIZE, [(size, id) for id, size in grown.items()])

    def _write_pools(self, records: Iterable[PoolRecord]) -> None:
        rows, uses = [], []
        for key, _, expires_at, source, note in records:
            id = self._next_number()
            ids = self._pools.setdefault(key, [])
            ids.append(id)
            list_id = 0 if source is None else self._lists[source][0]
            rows.append((id, ids[0], *self._keyed(key), expires_at, source is None, list_id, note))
            if source is not None:
                uses.append((id, expires_at, list_id))
        self._execute_all(_POOL, rows)
        self._execute_all(_USE, uses)

    def _write_handed(self, records: Iterable[HandedRecord]) -> None:
        rows = []
        for key, number, user, item in records:
            ids = self._pools[key]
            pool = ids[number - 1]
            nth = self._last_handed[2] + 1 if self._last_handed[:2] == (pool, user) else 1
            self._last_handed = (pool, user, nth)
            self._handed[pool] = ordinal = self._handed.get(pool, 0) + 1
            rows.append((pool, ordinal, ids[0], item, user, nth))
        self._execute_all(_HANDED, rows)

    def _write_spent(self, records: Iterable[SpentRecord]) -> None:
        rows = [(self._family(key), bytes.fromhex(digest)) for key, digest in records]
        self._execute_all(_SPENT, rows)

    def _family(self, key: Key) -> int:
        family = self._families.get(key)
        if family is None:
            family = self._families[key] = self._spent.family(key, space=self._space)
        return family

    def _write_rosters(self, records: Iterable[RosterRecord]) -> None:
        for key, expires_at in records:
            id = self._next_number()
            params = (self._space, key.kind, key.owner, key.user, key.channel)
            row = self._group_commit.connection.execute(ROOT, params).fetchone()
            root = row[0] if row else id
            self._rosters[key] = id, root
            self._group_commit.connection.execute(_ROSTER, (id, root, *self._keyed(key), expires_at))

    def _write_members(self, records: Iterable[MemberRecord]) -> None:
        rows = []
        for key, member in records:
            id, root = self._rosters[key]
            rows.append((root, member, id))
        self._execute_all(_MEMBER, rows)


_WRITERS: Final[Mapping[type[Record], Callable[[RecordRows, Iterable[Any]], None]]] = {
    DocumentRecord: RecordRows._write_documents,
    BallotRecord: RecordRows._write_ballots,
    ChoiceRecord: RecordRows._write_choices,
    EntryRecord: RecordRows._write_entries,
    ItemRecord: RecordRows._write_items,
    ListRecord: RecordRows._write_lists,
    ListItemsRecord: RecordRows._write_list_items,
    PoolRecord: RecordRows._write_pools,
    HandedRecord: RecordRows._write_handed,
    SpentRecord: RecordRows._write_spent,
    RosterRecord: RecordRows._write_rosters,
    MemberRecord: RecordRows._write_members,
}


STEP = 250
"""Records that are written in one group commit."""
_COPIED = 100
"""Steps after which the write-ahead log is copied. Else it grows until a commit must copy all of it."""


class Load(Tables):
    def __init__(
        self,
        group_commit: GroupCommit,
        namespace: NamespaceIds,
        forget_namespace: Callable[[], None],
        copy_log: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(group_commit, namespace)
        self._copy_log = copy_log
        self._forget_namespace = forget_namespace
        """Writes what the group has accepted for the namespace, and drops every cache of its data."""

    async def __call__(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        if replace:
            await self._replace(pages)
        else:
            records = [record async for page in checked(pages) for record in page]
            await self._group_commit.write(self._merge, records)

    async def _replace(self, pages: AsyncIterator[Sequence[Record]]) -> None:
        space = await self._group_commit.write(self._namespace.begin_hidden)
        rows = RecordRows(self._group_commit, self._namespace, space)
        steps = 0
        try:
            async for page in checked(pages):
                for start in range(0, len(page), STEP):
                    await self._group_commit.write(rows.write, page[start : start + STEP])
                    steps += 1
                    if steps % _COPIED == 0:
                        await self._copy_log()
            while await self._group_commit.write(rows.finish, STEP):
                pass
            await self._group_commit.write(self._switch, space)
        except BaseException:
            with suppress(EngineError):  # the next opening alone removes it too
                await self._group_commit.write(self._namespace.drop_hidden, space)
            raise

    def _switch(self, space: int) -> None:
        self._namespace.check_hidden(space)  # an error after the first row would roll back the writes of others
        self._forget_namespace()
        self._namespace.show_hidden(space)

    def _merge(self, records: Sequence[Record]) -> None:
        self._forget_namespace()
        clear(self._group_commit.connection, self._namespace.id, records)
        rows = RecordRows(self._group_commit, self._namespace, self._namespace.id)
        rows.write(records)
        while rows.finish(STEP):
            pass
