"""The tables of a database: their creation, and the migration of an older file, after a backup next to it."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from functools import cache
from importlib.metadata import version
from pathlib import Path

from emulator.engines.engine import Upgrades
from emulator.engines.records import digest_of
from emulator.engines.shapes import NEVER

VERSION = 6

PRAGMAS = (
    # Casts touch random pages of a large ballot, and each touched page is written whole: small pages made such casts a
    # quarter cheaper, and others no slower.
    "page_size = 1024",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "wal_autocheckpoint = 4000",  # about 4 MB, as by default
    "cache_size = -32768",
    "cell_size_check = ON",  # detects pages that are corrupt in part
)

# Columns have kept their names since the first format. Parts of a `Key`: shelf = kind, owner = owner, name = name,
# place = channel, holder = user. `space` is the id of a namespace; a reset gives the namespace a new id. `dead` and
# `dead_…` list the ids of removed records whose rows have yet to be deleted (`purge.py`).
_KEY = "shelf TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, holder TEXT NOT NULL, place TEXT NOT NULL"
_KEYED = "space, shelf, owner, name, holder, place"  # channel last, for queries on all channels

TABLES = (
    "CREATE TABLE numbers (next INTEGER NOT NULL)",
    "INSERT INTO numbers VALUES (1)",
    "CREATE TABLE spaces (namespace TEXT PRIMARY KEY, space INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE dead_spaces (space INTEGER PRIMARY KEY)",
    # Records that expired and were then replaced or dropped; `purge` has yet to report them.
    f"CREATE TABLE fallen (space INTEGER NOT NULL, {_KEY}, at INTEGER NOT NULL)",
    "CREATE INDEX fallen_by_end ON fallen (space, at)",
    f"""CREATE TABLE documents (
        id INTEGER PRIMARY KEY, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL, value BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX documents_by_key ON documents (space, shelf, owner, name, place, holder)",
    "CREATE INDEX documents_by_end ON documents (space, expires_at)",
    f"""CREATE TABLE ballots (
        id INTEGER PRIMARY KEY, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL, definition BLOB,
        opens_at INTEGER NOT NULL, closes_at INTEGER NOT NULL, disabled INTEGER NOT NULL,
        known_voters_only INTEGER NOT NULL, per_voter INTEGER NOT NULL, per_choice INTEGER NOT NULL,
        choices INTEGER NOT NULL
    )""",
    f"CREATE UNIQUE INDEX ballots_by_key ON ballots ({_KEYED})",
    "CREATE INDEX ballots_by_end ON ballots (space, expires_at)",
    "CREATE TABLE dead (ballot INTEGER PRIMARY KEY)",
    # A voter's casts for one choice. `slot` distinguishes the rows of one voter and stays when the choice is replaced.
    # The primary key ascends with time, so that a million entries are read in storage order.
    """CREATE TABLE marks (
        number INTEGER PRIMARY KEY, ballot INTEGER NOT NULL, voter TEXT NOT NULL, slot INTEGER NOT NULL,
        choice TEXT NOT NULL, times INTEGER NOT NULL, cast_at INTEGER NOT NULL, note BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX marks_by_voter ON marks (ballot, voter, slot)",
    "CREATE INDEX marks_by_age ON marks (ballot, cast_at)",  # then by number, the primary key
    # `since` is the number of the cast from which on the choice has had casts without a gap.
    """CREATE TABLE tallies (
        ballot INTEGER NOT NULL, choice TEXT NOT NULL, count INTEGER NOT NULL, since INTEGER NOT NULL,
        PRIMARY KEY (ballot, choice)
    ) WITHOUT ROWID""",
    "CREATE INDEX tallies_by_count ON tallies (ballot, count DESC, since)",
    f"CREATE TABLE logs (id INTEGER PRIMARY KEY, space INTEGER NOT NULL, {_KEY})",
    f"CREATE UNIQUE INDEX logs_by_key ON logs ({_KEYED})",
    """CREATE TABLE items (
        number INTEGER PRIMARY KEY, log INTEGER NOT NULL, space INTEGER NOT NULL, at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL, value BLOB NOT NULL
    )""",
    "CREATE INDEX items_by_age ON items (log, at, number, expires_at)",
    "CREATE INDEX items_by_end ON items (space, expires_at)",
)
_CREATED = re.compile(r"CREATE (?:TABLE|INDEX|UNIQUE INDEX) (\w+)")
_COLUMN = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+)")
_DROPPED = re.compile(r"DROP (?:TABLE|INDEX) (\w+)")
_STAMP = 0x45
"""The first byte of the `application_id`; the others are the version of extcli: major, minor, patch."""
_EXISTING = """
    SELECT name FROM sqlite_schema UNION ALL SELECT 'marks.' || name FROM pragma_table_info('marks')
    UNION ALL SELECT 'ballots.' || name FROM pragma_table_info('ballots')
"""
ADDED = {
    2: (
        # Messages between processes. Only the newest are kept; `number` is never reused.
        f"""CREATE TABLE messages (
            number INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, sender TEXT NOT NULL, {_KEY},
            body BLOB NOT NULL
        )""",
    ),
    3: (
        # A dropped pool that has a history stays, `closed`, until its expiry. `root` is shared by all pools of a key
        # while any of them exists.
        f"""CREATE TABLE pools (
            id INTEGER PRIMARY KEY, root INTEGER NOT NULL, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL,
            closed INTEGER NOT NULL DEFAULT 0, list INTEGER NOT NULL, position INTEGER NOT NULL DEFAULT 0,
            handed INTEGER NOT NULL DEFAULT 0, note BLOB NOT NULL
        )""",
        f"CREATE INDEX pools_by_key ON pools ({_KEYED}, closed)",
        "CREATE INDEX pools_by_end ON pools (space, expires_at)",
        "CREATE TABLE dead_pools (pool INTEGER PRIMARY KEY)",
        # `pool` is the one that uses the list, if any; then they expire together.
        f"""CREATE TABLE lists (
            id INTEGER PRIMARY KEY, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL,
            size INTEGER NOT NULL DEFAULT 0, pool INTEGER
        )""",
        f"CREATE UNIQUE INDEX lists_by_key ON lists ({_KEYED})",
        "CREATE INDEX lists_by_end ON lists (space, expires_at)",
        "CREATE TABLE dead_lists (list INTEGER PRIMARY KEY)",
        # Consecutive items of a list, from position `first` on.
        """CREATE TABLE chunks (
            id INTEGER PRIMARY KEY, list INTEGER NOT NULL, first INTEGER NOT NULL, items BLOB NOT NULL
        )""",
        "CREATE UNIQUE INDEX chunks_by_list ON chunks (list, first)",
        # `ordinal` counts the pool's handed-out items, `nth` this user's (`holder`). The primary key ascends,
        # so that rows are appended. `sum` is a checksum of the item.
        """CREATE TABLE handed (
            pool INTEGER NOT NULL, ordinal INTEGER NOT NULL, root INTEGER NOT NULL, item TEXT NOT NULL,
            sum INTEGER NOT NULL, holder TEXT NOT NULL, nth INTEGER NOT NULL, PRIMARY KEY (pool, ordinal)
        ) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX handed_by_holder ON handed (root, holder, pool, nth)",
        "CREATE INDEX handed_by_sum ON handed (root, sum)",
        # `root` is shared by all rosters whose keys differ only in the name.
        f"""CREATE TABLE rosters (
            id INTEGER PRIMARY KEY, root INTEGER NOT NULL, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL
        )""",
        "CREATE UNIQUE INDEX rosters_by_key ON rosters (space, shelf, owner, holder, place, name)",
        "CREATE INDEX rosters_by_end ON rosters (space, expires_at)",
        # The primary key finds all rosters of a member in one lookup.
        """CREATE TABLE members (
            root INTEGER NOT NULL, member TEXT NOT NULL, roster INTEGER NOT NULL, PRIMARY KEY (root, member, roster)
        ) WITHOUT ROWID""",
        # One scan of the members serves all removed rosters of a root; this is its position.
        """CREATE TABLE dead_rosters (
            root INTEGER PRIMARY KEY, member TEXT NOT NULL DEFAULT '', roster INTEGER NOT NULL DEFAULT 0
        )""",
    ),
    4: (
        # Pools whose keys differ only in the name are a family.
        """CREATE TABLE families (
            id INTEGER PRIMARY KEY, space INTEGER NOT NULL, shelf TEXT NOT NULL, owner TEXT NOT NULL,
            holder TEXT NOT NULL, place TEXT NOT NULL
        )""",
        "CREATE UNIQUE INDEX families_by_key ON families (space, shelf, owner, holder, place)",
        "CREATE TABLE dead_families (family INTEGER PRIMARY KEY)",
        # A digest (`digest_of`) of each item that a family has handed out, however long ago.
        """CREATE TABLE spent (
            family INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (family, digest)
        ) WITHOUT ROWID""",
        # The id of a pool identifies its family too, because a pool belongs to one.
        """INSERT INTO families
            SELECT min(id), space, shelf, owner, holder, place FROM pools GROUP BY space, shelf, owner, holder, place
        """,
        """INSERT OR IGNORE INTO spent
            SELECT family, digest_of(item) FROM handed JOIN (
                SELECT pools.id AS pool, families.id AS family
                FROM pools JOIN families USING (space, shelf, owner, holder, place)
            ) USING (pool) ORDER BY 1, 2
        """,
        # A process of the earlier version cannot hand out items without `sum`, nor forget to note them as spent.
        "DROP INDEX handed_by_sum",
        "DROP INDEX handed_by_holder",
        "ALTER TABLE handed RENAME TO handed_3",
        """CREATE TABLE handed (
            pool INTEGER NOT NULL, ordinal INTEGER NOT NULL, root INTEGER NOT NULL, item TEXT NOT NULL,
            holder TEXT NOT NULL, nth INTEGER NOT NULL, PRIMARY KEY (pool, ordinal)
        ) WITHOUT ROWID""",
        "INSERT INTO handed SELECT pool, ordinal, root, item, holder, nth FROM handed_3",
        "DROP TABLE handed_3",
        "CREATE UNIQUE INDEX handed_by_holder ON handed (root, holder, pool, nth)",
    ),
    5: (
        "CREATE INDEX ballots_by_channel ON ballots (space, shelf, owner, place, name, holder)",
        "CREATE INDEX logs_by_channel ON logs (space, shelf, owner, place, name, holder)",
    ),
    6: (
        # Whether `note` alone describes the cast. Earlier versions wrote a part of the description.
        "ALTER TABLE marks ADD COLUMN whole INTEGER NOT NULL DEFAULT 0",
        # The time of the latest cast while no cast has had an earlier time than one before it; else and in ballots of
        # earlier versions, `NEVER`.
        f"ALTER TABLE ballots ADD COLUMN latest INTEGER NOT NULL DEFAULT {NEVER}",
    ),
}
"""The statements that migrate a file of an earlier format, by the format that added them."""


class UnusableDatabase(Exception):
    """Raised for a database that this version of extcli cannot use."""


def _names(version: int) -> list[str]:
    """Return the tables and indexes of a format, and the columns that were added to a table."""
    names: dict[str, None] = {}
    for each in [*(TABLES if version else ()), *(each for n, some in ADDED.items() if n <= version for each in some)]:
        if match := _CREATED.match(each):
            names[match[1]] = None
        elif match := _COLUMN.match(each):
            names[f"{match[1]}.{match[2]}"] = None
        elif match := _DROPPED.match(each):
            names.pop(match[1], None)
    return list(names)


def first_format_with(statement: str) -> int:
    """Return the first format in which a statement works: it has all tables and columns that the statement names."""
    names = set(re.findall(r"\w+", statement)) & _short_names(VERSION)
    return next(version for version in range(1, VERSION + 1) if names <= _short_names(version))


@cache
def _short_names(version: int) -> set[str]:
    return {name.rpartition(".")[2] for name in _names(version)}


def _format_of(names: set[str]) -> int:
    """Return the newest format whose tables, indexes and columns all exist; 0 if there is none."""
    return next((version for version in range(VERSION, 0, -1) if names.issuperset(_names(version))), 0)


def set_options(connection: sqlite3.Connection) -> None:
    """Set the options of a connection."""
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def format_of(connection: sqlite3.Connection) -> int:
    """Return the format of a database that this version can use, 0 for an empty one. Raises `UnusableDatabase`."""
    connection.execute("SAVEPOINT reading")  # one state, also inside a transaction
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        names = {name for (name,) in connection.execute(_EXISTING)}
        if version > VERSION:
            needed = writer_of(connection)
            raise UnusableDatabase(
                f"written by a newer version (format {version}; this version reads formats up to {VERSION}); "
                f"use extcli {f'{needed} or later' if needed else 'of the version that wrote it'}"
            )
        found = _format_of(names)
        if found > version:
            raise UnusableDatabase(
                f"its user_version is {version}, but its tables are of format {found}; was it changed?"
            )
        if version == 0 and names:
            raise UnusableDatabase("it is the database of another program")
        missing = [name for name in _names(version) if name not in names]
        if not missing and version and connection.execute("SELECT next FROM numbers").fetchone() is None:
            missing = ["the row of numbers"]
        if missing:
            raise UnusableDatabase(
                f"it is an incomplete extcli database: {missing[0]} is missing; was it partly recovered?"
            )
        return int(version)
    finally:
        connection.execute("RELEASE reading")


def writer_of(connection: sqlite3.Connection) -> str | None:
    """Return the version of extcli that created the database or raised it to its format; `None` if unknown."""
    (stamp,) = connection.execute("PRAGMA application_id").fetchone()
    return ".".join(str(stamp >> shift & 0xFF) for shift in (16, 8, 0)) if stamp >> 24 == _STAMP else None


def statements_of(version: int, *, after: int = 0) -> list[str]:
    """Return the SQL statements that upgrade format `after` to format `version`.

    By default they start from an empty file.
    """
    added = [each for number, some in ADDED.items() if after < number <= version for each in some]
    return added if after else [*TABLES, *added]


def create_or_raise(connection: sqlite3.Connection, version: int, writer: str) -> None:
    """Upgrade a database of format `version` to the current format, inside the open transaction.

    `version` is 0 for an empty database.
    `writer` is the version of extcli.
    """
    connection.create_function("digest_of", 1, digest_of, deterministic=True)
    for statement in statements_of(VERSION, after=version):
        connection.execute(statement)
    numbers = [min(int(each), 0xFF) for each in re.findall(r"\d+", writer)[:3]]
    stamp = _STAMP << 24 | sum(number << shift for number, shift in zip(numbers, (16, 8, 0), strict=False))
    connection.execute(f"PRAGMA application_id = {stamp}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


_log = logging.getLogger("emulator.engines")


class BeingRaised(Exception):
    """Raised if another process holds the lock on a file of an older format, usually because it upgrades the file."""


def create_or_upgrade(connection: sqlite3.Connection, path: str | None, upgrades: Upgrades) -> None:
    """Create missing tables, raise an older format, and set the options of the connection.

    Raises `UnusableDatabase`, `BeingRaised`, or a busy `OperationalError` while another process creates the file.
    """
    found = format_of(connection)
    if 0 < found < VERSION and not upgrades.allowed:
        raise UnusableDatabase(
            f"its data has format {found}, this version needs format {VERSION}, and --no-upgrade is set; without it, "
            "extcli serve backs the file up and raises the format"
        )
    set_options(connection)
    if found == VERSION:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if found and error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise BeingRaised from error
        raise
    try:
        found = format_of(connection)  # another process may have been faster
        if found < VERSION:
            backup = _backed_up(path, found, upgrades.now) if path is not None and found else None
            create_or_raise(connection, found, version("extcli") if path is not None else "")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if 0 < found < VERSION:
        message = "%s: raised from format %s to %s; the former file is kept as %s%s"
        _log.info(message, path, found, VERSION, backup, upgrades.note)


def _backed_up(path: str, found: int, now: int) -> Path:
    """Copy the file, which no other process writes to, to a file next to it that is named after its format."""
    from emulator.engines.sqlite.files.copying import (
        DamagedCopy,
        copied,
        free_name,
        move_into_place,
        remove_parts,
        timestamp,
    )

    beside = Path(f"{os.path.abspath(path)}.format-{found}")
    remove_parts(beside)
    target = free_name(Path(f"{beside}-{timestamp(now)}"))
    try:
        with copied(path, beside) as copy:
            move_into_place(copy, target, replace=False)
    except DamagedCopy as error:
        raise UnusableDatabase(f"its format is not raised, because it is corrupt ({error})") from None
    except OSError as error:
        raise UnusableDatabase(
            f"its format is not raised, because no backup can be written to {target}: {error.strerror}"
        ) from None
    return target
