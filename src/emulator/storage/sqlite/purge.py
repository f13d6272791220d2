"""Housekeeping in bounded steps: removes and reports expired records, and deletes unreachable rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.core.keys import Expired, Key
from emulator.storage.merging import Row
from emulator.storage.sqlite.namespace import Tables, write_operation
from emulator.storage.sqlite.tables import CHUNKS, EXPIRING_TABLES, KEY, LOGS, TABLES, Table

ROWS_PER_STEP = 250
"""Rows removed between two returns to the event loop."""
_CHUNK_STEP = 40
"""Fewer for chunks of lists, which are large."""

_EXPIRED_ITEMS = f"""
    SELECT number, log, items.expires_at, {KEY} FROM items CROSS JOIN logs ON logs.id = log
    WHERE items.space = ? AND items.expires_at <= ? ORDER BY items.expires_at LIMIT {ROWS_PER_STEP}
"""
_WHERE_EXPIRED = f"WHERE space = ? AND expires_at <= ? LIMIT {ROWS_PER_STEP}"
_IS_EMPTY = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM items WHERE log = ?)"
_NEXT_DEAD = "SELECT id FROM dead WHERE owner = ? LIMIT 1"
_FORGET_DEAD = "DELETE FROM dead WHERE owner = ? AND id = ?"


class SqlitePurge(Tables):
    """The part of an engine that removes what has expired, and what belonged to it."""

    async def purge(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        # Each write waits for its commit, and so returns to the event loop.
        for table in EXPIRING_TABLES:
            while rows := await self._purge_rows(table, now):
                yield [Expired(Key(*key), at) for _, at, is_reported, *key in rows if is_reported]
        while ends := await self._purge_items(now):
            yield ends

    async def tidy(self) -> None:
        """Delete unreachable rows: of removed ballots, pools, lists and rosters, and of namespaces before a reset."""
        while await self._delete_dead():
            pass

    @write_operation
    def _purge_rows(self, table: Table, now: int) -> list[Row]:
        """Remove some expired rows of a table, and return them."""
        self.group_commit.flush()
        statement = f"SELECT id, expires_at, {table.is_listed}, {KEY} FROM {table.name} {_WHERE_EXPIRED}"
        rows = self._execute(statement, self._namespace.id, now).fetchall()
        if rows:
            self.group_commit.flush_caches()  # so that setting the clock back does not revive them
        for id, *_ in rows:
            self._remove_row(table, id)
        return rows

    @write_operation
    def _purge_items(self, now: int) -> list[Expired]:
        rows = self._execute(_EXPIRED_ITEMS, self._namespace.id, now).fetchall()
        newest = {}
        for number, log, at, *key in rows:
            self._execute("DELETE FROM items WHERE number = ?", number)
            newest[log] = Expired(Key(*key), at)  # the last one: rows are sorted by expiry
        for log in newest:
            if self._execute(_IS_EMPTY, log).fetchone():
                self._remove_row(LOGS, log)
        return list(newest.values())

    @write_operation
    def _delete_dead(self) -> bool:
        """Delete some rows; return False if there were none."""
        self.group_commit.flush()  # removed rows may have unsaved contents
        for owner in TABLES:
            if dead := self._execute(_NEXT_DEAD, owner.name).fetchone():
                if not any(self._delete_some(table, *dead) for table in owner.contents):
                    self._execute(_FORGET_DEAD, owner.name, *dead)
                return True
        return False

    def _delete_some(self, table: Table, owner: int) -> bool:
        """Delete some of the rows that belong to a removed one, and list them as removed if they have contents."""
        # Select, then delete by primary key: as one statement, SQLite would scan all of a ballot in every step.
        key = table.key if "," in table.key else "rowid"
        step = _CHUNK_STEP if table is CHUNKS else ROWS_PER_STEP
        rows = self._execute(
            f"SELECT {key} FROM {table.name} WHERE {table.owner_id} = ? LIMIT {step}", owner
        ).fetchall()
        for row in rows:
            if table.contents:
                self._remove_row(table, *row)
            else:
                self._execute(f"DELETE FROM {table.name} WHERE ({key}) = ({', '.join('?' * len(row))})", *row)
        return bool(rows)
