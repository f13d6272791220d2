"""The structure that each format has: tables, columns and indexes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from emulator.engines.records import digest_of
from emulator.engines.sqlite.schema import statements_of

_OBJECTS = "SELECT name, type, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_NULLABLE = {("ballots", "definition"), ("lists", "pool")}


def differences(connection: sqlite3.Connection, version: int) -> Iterator[tuple[str, str]]:
    """Yield each table, index, trigger or view that is missing, changed or not part of the format, and why."""
    expected, found = _structure_of(version), _objects(connection)
    for name, (kind, table, definition) in expected.items():
        if name not in found:
            yield table, f"the {kind} {name} is missing"
        elif found[name] != (kind, table, definition):
            yield table, f"the {kind} {name} is not as in format {version}"
    for name in sorted(found.keys() - expected.keys()):
        kind, table, _ = found[name]
        yield table, f"the {kind} {name} is not part of format {version}"


def types_of(connection: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """Return the types that values may have, as a list in SQL, by table and column; only tables of extcli."""
    known = {name for name, (kind, *_) in _structure_of(1 << 30).items() if kind == "table"}
    found: dict[str, dict[str, str]] = {}
    for table, (kind, *_) in _objects(connection).items():
        if kind == "table" and table in known:
            columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
            found[table] = {
                name: f"'{type.lower()}'" + (", 'null'" if (table, name) in _NULLABLE else "") for name, type in columns
            }
    return found


def _structure_of(version: int) -> dict[str, tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        empty.create_function("digest_of", 1, digest_of, deterministic=True)
        for statement in statements_of(version):
            empty.execute(statement)
        return _objects(empty)


def _objects(connection: sqlite3.Connection) -> dict[str, tuple[str, str, str]]:
    """Return kind, table and definition of each object, by its name."""
    return {
        name: (kind, table, re.sub(r"[\s\"]+", "", definition or "").lower())
        for name, kind, table, definition in connection.execute(_OBJECTS)
    }
