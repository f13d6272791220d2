"""The format of a database: its number, its options, and how its tables are created."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from emulator.storage.sqlite.tables import NUMBERS, TABLES

VERSION = 1
"""The format that this version writes."""

PRAGMAS = (
    # Casts touch random pages of a large ballot, and each touched page is written whole: small pages made such casts a
    # quarter cheaper, and others no slower.
    "page_size = 1024",
    "journal_mode = WAL",
    "wal_autocheckpoint = 4000",  # about 4 MB, as by default
    "cache_size = -32768",
    "cell_size_check = ON",  # detects pages that are corrupt in part
)
UPGRADES: Mapping[int, Sequence[str]] = {}
"""The statements that raise a database to each format after the first from the one before."""
_STAMP = 0x45
"""The first byte of the `application_id`; the others are the version of extcli: major, minor, patch."""


class UnusableDatabase(Exception):
    """Raised for a database that this version of extcli cannot use."""


def format_of(connection: sqlite3.Connection) -> int:
    """Return the format of a database that this version can use, 0 for an empty one. Raises `UnusableDatabase`."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    writer = writer_of(connection)
    if not found and connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
        return 0
    if writer is None:
        raise UnusableDatabase("it is the database of another program")
    if not 0 < found <= VERSION:
        raise UnusableDatabase(
            f"its data has format {found}, and this version reads format {VERSION}; use the extcli that wrote it "
            f"({writer}), or another file"
        )
    return int(found)


def writer_of(connection: sqlite3.Connection) -> str | None:
    """Return the version of extcli that created the database or raised it to its format; `None` if unknown."""
    (stamp,) = connection.execute("PRAGMA application_id").fetchone()
    first, *numbers = stamp.to_bytes(4, signed=True)
    return ".".join(map(str, numbers)) if first == _STAMP else None


def create_tables(connection: sqlite3.Connection, synchronous: str) -> None:
    """Create missing tables, and set the options of the connection. `synchronous` is SQLite's option.

    Raises `UnusableDatabase`, or a busy `OperationalError` while another program writes to the file; then close the
    connection, which takes back what was begun.
    """
    found = format_of(connection)
    for pragma in (f"synchronous = {synchronous}", *PRAGMAS):
        connection.execute(f"PRAGMA {pragma}")
    if found == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    if not found:
        for statement in [each for table in TABLES for each in table.statements]:
            connection.execute(statement)
        connection.execute(NUMBERS.insert, (1,))
    for number in range(max(found, 1), VERSION):
        for statement in UPGRADES[number + 1]:
            connection.execute(statement)
    numbers = [min(int(each), 0xFF) for each in re.findall(r"\d+", version("extcli"))]
    stamp = bytes((_STAMP, *numbers, 0, 0, 0))[:4]
    connection.execute(f"PRAGMA application_id = {int.from_bytes(stamp)}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
