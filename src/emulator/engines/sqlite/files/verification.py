"""Verifies a database file: pages, structure, and whether its tables agree; and describes it in figures."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from emulator.engines.records import digest_of
from emulator.engines.sqlite.connection import FAILURES, describe, explain, is_corruption
from emulator.engines.sqlite.files.checks import CONTENT_CHECKS, REFERENCE_CHECKS, Check, key_of
from emulator.engines.sqlite.files.copying import check_exists, open_read_only
from emulator.engines.sqlite.namespace import HIDDEN, UNFINISHED_END
from emulator.engines.sqlite.schema import VERSION, UnusableDatabase, format_of, statements_of, writer_of
from emulator.engines.sqlite.table_list import TABLES, THINGS
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
        *_range_of_numbers(connection),
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


def _range_of_numbers(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
    times = " UNION ALL ".join(f"SELECT {at} AS at FROM {table}" for table, at in _TIMES)
    oldest, newest = connection.execute(
        f"SELECT min(at), max(at) FROM ({times}) WHERE typeof(at) = 'integer'"
    ).fetchone()
    return oldest, newest


def _number(connection: sqlite3.Connection, statement: str) -> int:
    row: Any = connection.execute(statement).fetchone()
    return int(row[0])


def facts_of_file(path: str) -> Facts:
    """Describe a database file, even while a service uses it. Raises `EngineError`."""
    check_exists(path)
    try:
        with closing(open_read_only(path)) as connection:
            connection.execute("BEGIN")  # one state, while a service goes on writing
            return facts_of(connection, path)
    except UnusableDatabase as error:
        raise EngineError(f"cannot open {path}: {error}") from None
    except FAILURES as error:
        raise EngineError(f"cannot open {path}: {explain(error, path)}") from error


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


MAX_LISTED: Final = 100
"""Findings of one check."""


class Finding(NamedTuple):
    """One problem of a file. It shows no values, no users and no names of documents, which may be secrets."""

    table: str
    """Empty for the file as a whole."""
    key: str
    """Which row, if known."""
    what: str


class Verified(NamedTuple):
    """The outcome of a verification."""

    format: int
    facts: Facts | None
    """`None` if anything is wrong."""
    findings: Sequence[Finding]


def verify_file(path: str) -> Verified:
    """Verify a file, even while a service uses it. Raises `EngineError` if it is not an extcli database."""
    check_exists(path)
    try:
        return verify(path)
    except UnusableDatabase as error:
        raise EngineError(f"cannot open {path}: {error}") from None
    except FAILURES as error:
        raise EngineError(f"cannot open {path}: {explain(error, path)}") from error


def verify(path: str) -> Verified:
    """Verify the database of a connection. Raises `UnusableDatabase` or `sqlite3.Error`."""
    try:
        connection = open_read_only(path)
    except FAILURES as error:
        if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            raise
        if not is_corruption(error):
            raise
        return Verified(0, None, [Finding("", "", describe(error))])
    with closing(connection):
        connection.execute("BEGIN")  # one state, while a service goes on writing
        version = _format(connection)
        findings = [*cut_end(connection, path), *_findings(connection, version)]
        return Verified(version, None if findings else facts_of(connection, path), findings)


def cut_end(connection: sqlite3.Connection, path: str) -> Iterator[Finding]:
    """Yield whether the end of the last page is missing: SQLite reads zeros there, which may be values."""
    (size,), (count,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count"))
    found = os.path.getsize(path)
    if found < size * count and not os.path.exists(f"{path}-wal"):  # the log may have the last pages
        yield Finding("", "", f"the file has {found:,} bytes, but its {count:,} pages have {size * count:,}")


def _format(connection: sqlite3.Connection) -> int:
    """Return the format that the file states. Raises `UnusableDatabase` if it is newer, or of another program."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        format_of(connection)
    if version < 1 and writer_of(connection) is None:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        if not {"numbers", "spaces"} <= names:
            raise UnusableDatabase("it is not a database of extcli's")
    return int(version)


def _findings(connection: sqlite3.Connection, version: int) -> Iterator[Finding]:
    try:
        for (found,) in connection.execute(f"PRAGMA integrity_check({MAX_LISTED})"):
            if found != "ok":
                yield Finding("", "", " ".join(str(found).split()))
    except FAILURES as error:
        yield Finding("", "", describe(error))
    try:
        format_of(connection)
    except UnusableDatabase as error:
        yield Finding("", "", str(error))
    except FAILURES as error:
        yield Finding("", "", describe(error))
        return
    is_complete = True
    for name, what in differences(connection, version):
        is_complete = False
        yield Finding(name, "", what)
    connection.create_function("digest_of", 1, _digest, deterministic=True)
    connection.create_function("items_in", 1, _items_in, deterministic=True)
    columns = types_of(connection)
    yield from _unreadable_texts(connection, columns)
    for check in (*_type_checks(columns), *REFERENCE_CHECKS):
        if check.since <= version:
            yield from _run(connection, check, is_complete=is_complete)
    if is_complete:
        _hide_unfinished(connection, columns)
    for check in CONTENT_CHECKS:
        if check.since <= version:
            yield from _run(connection, check, is_complete=is_complete)


def _hide_unfinished(connection: sqlite3.Connection, tables: Mapping[str, object]) -> None:
    """Hide half copies and reset namespaces from this connection from now on.

    A load writes counts last, and `tidy` deletes a record before its references, so their tables do not agree.
    """
    unfinished = (
        f"SELECT space FROM main.spaces WHERE substr(namespace, -{len(UNFINISHED_END)}) = '{UNFINISHED_END}'"
        " UNION ALL SELECT space FROM main.dead_spaces"
    )
    try:
        if connection.execute(unfinished).fetchone() is None:
            return
        connection.execute("PRAGMA query_only = OFF")  # otherwise it also refuses temporary views
        for name, table in TABLES.items():
            of = f"space NOT IN ({unfinished})"
            if not table.in_space:
                of = f"{table.owner} NOT IN (SELECT id FROM main.{table.owners} WHERE space IN ({unfinished}))"
            if name in tables and (table.in_space or table.owners):
                connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{name} WHERE {of}")
        connection.execute("PRAGMA query_only = ON")
    except FAILURES:
        pass  # a damaged page, which is a finding already


def _run(connection: sqlite3.Connection, check: Check, *, is_complete: bool) -> Iterator[Finding]:
    try:
        rows = connection.execute(f"{check.statement} LIMIT {MAX_LISTED + 1}").fetchall()
    except FAILURES as error:
        # Without all tables, some checks cannot run; a missing table is already a finding.
        if is_complete or is_corruption(error):
            yield Finding(check.table, "", f"cannot be read: {describe(error)}")
        return
    for key, *values in rows[:MAX_LISTED]:
        yield Finding(check.table, str(key or ""), check.what.format(*values))
    if len(rows) > MAX_LISTED:
        yield Finding(check.table, "", f"more rows with the same finding: {check.what.partition('{')[0].strip()}")


def _type_checks(columns_of: Mapping[str, Mapping[str, str]]) -> Iterator[Check]:
    for table, columns in columns_of.items():
        for column, kinds in columns.items():
            yield Check(
                table,
                f"{column} is of type {{}}",
                f"SELECT {key_of(table)}, typeof({column}) FROM {table} WHERE typeof({column}) NOT IN ({kinds})",
            )


def _unreadable_texts(connection: sqlite3.Connection, columns_of: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    for table, columns in columns_of.items():
        texts = [column for column, kinds in columns.items() if "'text'" in kinds]
        try:
            if texts:  # Python decodes the text
                for _ in connection.execute(f"SELECT {', '.join(texts)} FROM {table}"):
                    pass
        except FAILURES as error:
            yield Finding(table, "", describe(error))


def _digest(item: object) -> bytes:
    return digest_of(item) if isinstance(item, str) else b""


def _items_in(chunk: object) -> int:
    return chunk.count(b"\0") + 1 if isinstance(chunk, bytes) else 0
