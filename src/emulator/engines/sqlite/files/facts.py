"""Describes a database file in figures."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from emulator.engines.sqlite.connection import FAILURES, explain
from emulator.engines.sqlite.files.copying import check_exists, open_read_only
from emulator.engines.sqlite.namespace_ids import HIDDEN
from emulator.engines.sqlite.schema import UnusableDatabase, format_of, writer_of
from emulator.engines.sqlite.table_list import THINGS
from emulator.errors import EngineError

_TIMES = (("marks", "cast_at"), ("items", "at"))


class Facts(NamedTuple):
    """A description of a database file."""

    format: int
    version: str | None
    """The version of extcli that created the file or raised it to this format, if it is known."""
    bytes: int
    """The size of the file, without its log."""
    free_bytes: int
    """In unused pages of the file."""
    environments: Mapping[str, Mapping[str, int]]
    """The number of things by environment, its namespaces included, and by kind."""
    namespaces: int
    oldest: int | None
    """When the oldest vote or entry of a log was written, in Unix ms."""
    newest: int | None


def facts_of(connection: sqlite3.Connection, path: str) -> Facts:
    """Describe a database. Raises `UnusableDatabase` for one of another program or of a newer format."""
    return Facts(
        format_of(connection),
        writer_of(connection),
        os.path.getsize(path),
        _number(connection, "PRAGMA freelist_count") * _number(connection, "PRAGMA page_size"),
        *_environments(connection),
        *_span(connection),
    )


def _environments(connection: sqlite3.Connection) -> tuple[dict[str, dict[str, int]], int]:
    rows = connection.execute("SELECT space, namespace FROM spaces ORDER BY namespace").fetchall()
    names = {space: name for space, name in rows if HIDDEN not in name}
    counts: dict[str, Counter[str]] = {name.partition("/")[0]: Counter() for name in names.values()}
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for table, *_ in THINGS:
        if table in tables:
            for space, kind, count in connection.execute(
                f"SELECT space, shelf, count(*) FROM {table} GROUP BY space, shelf"
            ):
                if space in names:
                    counts[names[space].partition("/")[0]][kind] += count
    visible = [name for name in names.values() if "/" in name and ":" not in name]
    return {name: dict(sorted(each.items())) for name, each in counts.items()}, len(visible)


def _span(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
    ends = [
        connection.execute(f"SELECT min({at}), max({at}) FROM {table} WHERE typeof({at}) = 'integer'").fetchone()
        for table, at in _TIMES
    ]
    oldest, newest = (
        [each[0] for each in ends if each[0] is not None],
        [each[1] for each in ends if each[1] is not None],
    )
    return min(oldest, default=None), max(newest, default=None)


def _number(connection: sqlite3.Connection, statement: str) -> int:
    row: Any = connection.execute(statement).fetchone()
    return int(row[0])


def described(path: str) -> Facts:
    """Describe a database file, also while a service uses it. Raises `EngineError`."""
    check_exists(path)
    try:
        with closing(open_read_only(path)) as connection:
            connection.execute("BEGIN")  # one state, while a service goes on writing
            return facts_of(connection, path)
    except UnusableDatabase as error:
        raise EngineError(f"cannot open {path}: {error}") from None
    except FAILURES as error:
        raise EngineError(f"cannot open {path}: {explain(error, path)}") from error
