"""Describes a database file, and verifies its pages and its format."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from emulator.core.errors import EngineError
from emulator.storage.sqlite.connection import FAILURES, describe, explain, is_corruption
from emulator.storage.sqlite.files.locks import check_links
from emulator.storage.sqlite.namespace import HIDDEN
from emulator.storage.sqlite.schema import UnusableDatabase, format_of, writer_of
from emulator.storage.sqlite.tables import THINGS

_TIMES = "SELECT min(at), max(at) FROM (SELECT cast_at AS at FROM entries UNION ALL SELECT at FROM items)"


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


def _facts_of(connection: sqlite3.Connection, path: str) -> Facts:
    """Describe a database. Raises `UnusableDatabase` for one of another program or format."""
    found = format_of(connection)
    (free_pages,), (page_size,), times = (
        connection.execute(each).fetchone() for each in ("PRAGMA freelist_count", "PRAGMA page_size", _TIMES)
    )
    free = free_pages * page_size
    return Facts(found, writer_of(connection), os.path.getsize(path), free, *_environments(connection), *times)


def _environments(connection: sqlite3.Connection) -> tuple[dict[str, dict[str, int]], int]:
    rows = connection.execute("SELECT space, namespace FROM spaces ORDER BY namespace").fetchall()
    names = {space: name for space, name in rows if HIDDEN not in name}
    counts: dict[str, Counter[str]] = {name.partition("/")[0]: Counter() for name in names.values()}
    for table in THINGS:
        for space, kind, count in connection.execute(
            f"SELECT space, kind, count(*) FROM {table.name} GROUP BY space, kind"
        ):
            if space in names:
                counts[names[space].partition("/")[0]][kind] += count
    visible = [name for name in names.values() if "/" in name]
    return {name: dict(sorted(each.items())) for name, each in counts.items()}, len(visible)


def check_regular(path: str | Path) -> None:
    """Raise `EngineError` for a directory, a device or a pipe. A file that does not exist is allowed."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise EngineError(f"{path} is not a regular file; give the name of a file")


def check_exists(path: str) -> None:
    """Raise `EngineError` unless there is a regular file."""
    check_regular(path)
    if not os.path.exists(path):
        raise EngineError(f"cannot open {path}: there is no such file")


@contextmanager
def file_errors(cannot: str, path: str) -> Iterator[None]:
    """Turn errors of this block into `EngineError`s that begin with `cannot`; `path` is the data file."""
    try:
        yield
    except UnusableDatabase as error:
        raise EngineError(f"{cannot}: {error}") from None
    except FAILURES as error:
        raise EngineError(f"{cannot}: {explain(error, path)}") from error
    except OSError as error:
        raise EngineError(f"{cannot}: {error.strerror}") from error


def open_read_only(path: str) -> sqlite3.Connection:
    """Open a database without changing it, even while a service uses it. Raises `sqlite3.Error`, `EngineError`."""
    check_links(path)
    file = os.path.abspath(path)
    may_create = os.access(file, os.W_OK) and os.access(os.path.dirname(file), os.W_OK)
    # A connection that may not write leaves an empty `-wal` and `-shm` behind, one that may removes them. But it would
    # also apply a log that a crash has left.
    mode = "rw" if may_create and not os.path.exists(f"{file}-wal") else "ro"
    if mode == "ro" and not os.path.exists(f"{file}-wal") and not os.access(os.path.dirname(file), os.W_OK):
        mode = "ro&immutable=1"  # the index of the log cannot be created, and there is no log
    connection = sqlite3.connect(f"{Path(file).as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=5)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def facts_of_file(path: str) -> Facts:
    """Describe a database file, even while a service uses it. Raises `EngineError`."""
    check_exists(path)
    with file_errors(f"cannot open {path}", path), closing(open_read_only(path)) as connection:
        connection.execute("BEGIN")  # one state, while a service goes on writing
        return _facts_of(connection, path)


MAX_LISTED: Final = 100
"""Findings of one verification."""


def verify_file(path: str) -> list[str]:
    """Return what is wrong with the pages of a file, without stored values. A service may use the file meanwhile.

    Raises `EngineError` if it is not a database that this version can use.
    """
    check_exists(path)
    with file_errors(f"cannot open {path}", path), closing(open_read_only(path)) as connection:
        try:
            connection.execute("BEGIN")  # one state, while a service goes on writing
            format_of(connection)
            found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({MAX_LISTED})")]
        except FAILURES as error:
            if not is_corruption(error):
                raise
            found = [describe(error)]
    return [" ".join(each.split()) for each in found if each != "ok"]
