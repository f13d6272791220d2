"""Copies a database in memory in short steps, as it was in one moment, while writing goes on.

SQLite's own backup of a database in memory starts again at each commit. Here rows are copied one after the other, while
triggers keep the former rows of all that changes. At the end, these replace what was copied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.table_list import TABLES

ONE_STEP: Final = 2_000
"""Pages that are copied in one step, which takes a few ms."""
_STEP: Final = 100
"""Rows that are copied between two returns to the event loop, in about half a millisecond."""
_COPIED: Final = {table.name: table for table in TABLES.values() if table.columns}
"""The tables with the data of namespaces, by name."""
_numbers: Final = count()


class _KeptTable:
    """One table, whose former rows are kept."""

    def __init__(self, source: sqlite3.Connection, name: str, key: tuple[str, ...], number: int) -> None:
        self._name, self._kept = name, f"former_{name}_{number}"
        names = [row[1] for row in source.execute(f"PRAGMA table_info({name})")]
        self._columns, self._keys = columns, keys = ", ".join(names), ", ".join(key)
        self._places = [names.index(each) for each in key]
        """The positions of the key in a row."""
        self._insert = f"INSERT INTO {name} ({columns}) VALUES ({', '.join('?' * len(names))})"
        self._end: int | None = None
        """The last key to copy, of a table where new rows have higher ones."""
        if len(key) == 1:
            (self._end,) = source.execute(f"SELECT coalesce(max({key[0]}), 0) FROM {name}").fetchone()
        source.execute(f"CREATE TEMP TABLE {self._kept} AS SELECT *, 1 AS existed FROM {name} LIMIT 0")
        source.execute(f"CREATE UNIQUE INDEX temp.{self._kept}_key ON {self._kept} ({keys})")

        def keep(columns: str, row: str, existed: int) -> str:
            # Not `INSERT OR IGNORE`: in a trigger, the conflict clause of the outer statement would hold.
            values = ", ".join(f"{row}.{each}" for each in columns.split(", "))
            same = " AND ".join(f"{each} = {row}.{each}" for each in key)
            return (
                f"INSERT INTO {self._kept} ({columns}, existed) SELECT {values}, {existed}"
                f" WHERE NOT EXISTS (SELECT 1 FROM {self._kept} WHERE {same});"
            )

        former, absent = keep(columns, "OLD", 1), keep(keys, "NEW", 0)
        for event, work in (("INSERT", absent), ("UPDATE", former + absent), ("DELETE", former)):
            source.execute(f"CREATE TEMP TRIGGER {self._kept}_{event} AFTER {event} ON main.{name} BEGIN {work} END")

    def copy(self, source: sqlite3.Connection, target: sqlite3.Connection) -> Iterator[None]:
        """Copy the rows as they are now, in steps."""
        end = "" if self._end is None else f"{self._keys} <= {self._end}"
        following = f"({self._keys}) > ({', '.join('?' * len(self._places))})"
        after, last = "", ()
        while True:
            where = " AND ".join(each for each in (end, after) if each)
            rows = source.execute(
                f"SELECT {self._columns} FROM main.{self._name} {where and f'WHERE {where}'}"
                f" ORDER BY {self._keys} LIMIT {_STEP}",
                last,
            ).fetchall()
            if not rows:
                return
            target.executemany(self._insert, rows)
            after, last = following, tuple(rows[-1][each] for each in self._places)
            yield

    def restore(self, source: sqlite3.Connection, target: sqlite3.Connection) -> Iterator[None]:
        """Put the former rows in the place of those that were copied, in steps."""
        delete = f"DELETE FROM {self._name} WHERE ({self._keys}) = ({', '.join('?' * len(self._places))})"
        select = (
            f"SELECT rowid, existed, {self._columns} FROM {self._kept} WHERE rowid > ? ORDER BY rowid LIMIT {_STEP}"
        )
        last = 0
        while rows := source.execute(select, (last,)).fetchall():
            last = rows[-1][0]
            target.executemany(delete, [[row[2 + each] for each in self._places] for row in rows])
            target.executemany(self._insert, [row[2:] for row in rows if row[1]])
            yield

    def stop_keeping(self, source: sqlite3.Connection) -> None:
        for event in ("INSERT", "UPDATE", "DELETE"):
            source.execute(f"DROP TRIGGER IF EXISTS temp.{self._kept}_{event}")

    def drop(self, source: sqlite3.Connection) -> None:
        source.execute(f"DROP TABLE IF EXISTS temp.{self._kept}")


def steps_of_copy(group_commit: GroupCommit, target: sqlite3.Connection) -> Generator[None, None, None]:
    """Copy everything that is committed at the first step to an empty database. Writing may go on between the steps."""
    source = group_commit.connection
    group_commit.commit_now()
    source.execute("PRAGMA temp_store = MEMORY")  # a full disk must not make writes fail
    with _transaction(group_commit):
        # Else `INSERT OR REPLACE` would call no trigger for the row that it replaces.
        source.execute("PRAGMA recursive_triggers = ON")
        tables = _schema_of(source, "table")
        number = next(_numbers)
        kept = [_KeptTable(source, table.name, table.key, number) for table in _COPIED.values()]
    try:
        for statement in tables:
            target.execute(statement)
        target.execute("BEGIN")
        yield
        for each in kept:
            yield from each.copy(source, target)
        with _transaction(group_commit):
            for each in kept:
                each.stop_keeping(source)
        for each in kept:
            yield from each.restore(source, target)
        target.execute("COMMIT")
    finally:
        with _transaction(group_commit):
            for each in kept:
                each.stop_keeping(source)
                each.drop(source)


def indexes_of(connection: sqlite3.Connection) -> list[str]:
    """Return the statements that create the indexes of the tables that are copied."""
    return _schema_of(connection, "index")


def _schema_of(connection: sqlite3.Connection, kind: str) -> list[str]:
    rows = connection.execute("SELECT tbl_name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL", (kind,))
    return [sql for name, sql in rows.fetchall() if name in _COPIED]


@contextmanager
def _transaction(group_commit: GroupCommit) -> Iterator[None]:
    """Commit what others have written, and then what is done in the block, at once."""
    group_commit.commit_now()
    group_commit.connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        group_commit.connection.execute("ROLLBACK")
        raise
    group_commit.connection.execute("COMMIT")
