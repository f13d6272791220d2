"""Describes a database file, and verifies its pages and its format."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from emulator.core.errors import EngineError
from emulator.storage.sqlite.connection import FAILURES, describe_error, file_errors, is_corruption
from emulator.storage.sqlite.locks import check_links
from emulator.storage.sqlite.namespace import HIDDEN
from emulator.storage.sqlite.tables import THING_TABLES, read_format, read_writer

_VISIBLE = f"instr(namespace, '{HIDDEN}') = 0"
_SELECT_TIMES = "SELECT min(at), max(at) FROM (SELECT cast_at AS at FROM entries UNION ALL SELECT at FROM items)"


class FileFacts(NamedTuple):
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


def check_regular(path: str | Path) -> None:
    """Raise `EngineError` for a directory, a device or a pipe. A file that does not exist is allowed."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise EngineError(f"{path} is not a regular file; give the name of a file")


def check_exists(path: str) -> None:
    """Raise `EngineError` unless there is a regular file."""
    check_regular(path)
    if not os.path.exists(path):
        raise EngineError(f"cannot open {path}: there is no such file")


def open_read_only(path: str) -> sqlite3.Connection:
    """Open a database without changing it, even while a service uses it. Raises `sqlite3.Error`, `EngineError`."""
    check_links(path)
    file = os.path.abspath(path)
    has_log = os.path.exists(f"{file}-wal")
    may_create = os.access(os.path.dirname(file), os.W_OK)
    # A connection that may not write leaves an empty `-wal` and `-shm` behind, one that may removes them. But it would
    # also apply a log that a crash has left.
    mode = "ro"
    if not has_log and not may_create:
        mode = "ro&immutable=1"  # the index of the log cannot be created, and there is no log
    elif not has_log and os.access(file, os.W_OK):
        mode = "rw"
    connection = sqlite3.connect(f"{Path(file).as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=5)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


@contextmanager
def _open_snapshot(path: str) -> Iterator[sqlite3.Connection]:
    """Open a database in one state, while a service may go on writing. Errors in the block become `EngineError`s."""
    check_exists(path)
    with file_errors(f"cannot open {path}", path), closing(open_read_only(path)) as connection:
        connection.execute("BEGIN")
        yield connection


def describe_file(path: str) -> FileFacts:
    """Describe a database file, even while a service uses it. Raises `EngineError`."""
    with _open_snapshot(path) as connection:
        found = read_format(connection)
        (free_pages,), (page_size,), times = (
            connection.execute(each).fetchone() for each in ("PRAGMA freelist_count", "PRAGMA page_size", _SELECT_TIMES)
        )
        names = [name for (name,) in connection.execute(f"SELECT namespace FROM spaces WHERE {_VISIBLE} ORDER BY 1")]
        return FileFacts(
            found,
            read_writer(connection),
            os.path.getsize(path),
            free_pages * page_size,
            _counts_by_environment(connection, names),
            sum("/" in name for name in names),
            *times,
        )


def _counts_by_environment(connection: sqlite3.Connection, names: Sequence[str]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for name in names:
        counts[name.partition("/")[0]] = Counter()
    for table in THING_TABLES:
        of_table = f"SELECT namespace, kind, count(*) FROM {table.name} JOIN spaces USING (space)"
        for name, kind, count in connection.execute(f"{of_table} WHERE {_VISIBLE} GROUP BY 1, 2"):
            counts[name.partition("/")[0]][kind] += count
    return {name: dict(sorted(each.items())) for name, each in counts.items()}


MAX_FINDINGS = 100
"""Findings of one verification."""


def verify_file(path: str) -> list[str]:
    """Return what is wrong with the pages of a file, without stored values. A service may use the file meanwhile.

    Raises `EngineError` if it is not a database that this version can use.
    """
    with _open_snapshot(path) as connection:
        try:
            read_format(connection)
            found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({MAX_FINDINGS})")]
        except FAILURES as error:
            if not is_corruption(error):
                raise
            found = [describe_error(error)]
    return [" ".join(each.split()) for each in found if each != "ok"]
