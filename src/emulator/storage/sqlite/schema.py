"""The tables of a database, and the number of their format."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

VERSION: Final = 1
"""The format that this version writes."""

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

# Parts of a `Key`: shelf = kind, owner = owner, name = name, place = channel, holder = user. `space` is the id of a
# namespace; a reset gives the namespace a new id. `dead` lists removed rows, by table and id, whose contents
# have yet to be deleted (`purge.py`).
_KEY = "shelf TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, holder TEXT NOT NULL, place TEXT NOT NULL"
_KEYED = "space, shelf, owner, name, holder, place"  # channel last, for queries on all channels

_FIRST_TABLES = (
    "CREATE TABLE numbers (next INTEGER NOT NULL)",
    "INSERT INTO numbers VALUES (1)",
    "CREATE TABLE spaces (namespace TEXT PRIMARY KEY, space INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE dead (owners TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (owners, id)) WITHOUT ROWID",
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
    "CREATE INDEX ballots_by_channel ON ballots (space, shelf, owner, place, name, holder)",
    "CREATE INDEX ballots_by_end ON ballots (space, expires_at)",
    # A voter's casts for one choice. `slot` distinguishes the rows of one voter and stays when the choice is replaced.
    # The primary key ascends with time, so that a million entries are read in storage order. `whole`: whether `note`
    # alone describes the cast.
    """CREATE TABLE marks (
        number INTEGER PRIMARY KEY, ballot INTEGER NOT NULL, voter TEXT NOT NULL, slot INTEGER NOT NULL,
        choice TEXT NOT NULL, times INTEGER NOT NULL, cast_at INTEGER NOT NULL, note BLOB NOT NULL,
        whole INTEGER NOT NULL
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
    "CREATE INDEX logs_by_channel ON logs (space, shelf, owner, place, name, holder)",
    """CREATE TABLE items (
        number INTEGER PRIMARY KEY, log INTEGER NOT NULL, space INTEGER NOT NULL, at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL, value BLOB NOT NULL
    )""",
    "CREATE INDEX items_by_age ON items (log, at, number, expires_at)",
    "CREATE INDEX items_by_end ON items (space, expires_at)",
    # A dropped pool that has a history stays, `closed`, until its expiry. `root` is shared by all pools of a key
    # while any of them exists.
    f"""CREATE TABLE pools (
        id INTEGER PRIMARY KEY, root INTEGER NOT NULL, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL,
        closed INTEGER NOT NULL DEFAULT 0, list INTEGER NOT NULL, position INTEGER NOT NULL DEFAULT 0,
        handed INTEGER NOT NULL DEFAULT 0, note BLOB NOT NULL
    )""",
    f"CREATE INDEX pools_by_key ON pools ({_KEYED}, closed)",
    "CREATE INDEX pools_by_end ON pools (space, expires_at)",
    # `pool` is the one that uses the list, if any; then they expire together.
    f"""CREATE TABLE lists (
        id INTEGER PRIMARY KEY, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL,
        size INTEGER NOT NULL DEFAULT 0, pool INTEGER
    )""",
    f"CREATE UNIQUE INDEX lists_by_key ON lists ({_KEYED})",
    "CREATE INDEX lists_by_end ON lists (space, expires_at)",
    # Consecutive items of a list, from position `first` on.
    """CREATE TABLE chunks (
        id INTEGER PRIMARY KEY, list INTEGER NOT NULL, first INTEGER NOT NULL, items BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX chunks_by_list ON chunks (list, first)",
    # `ordinal` counts the pool's handed-out items, `nth` this user's (`holder`). The primary key ascends,
    # so that rows are appended.
    """CREATE TABLE handed (
        pool INTEGER NOT NULL, ordinal INTEGER NOT NULL, root INTEGER NOT NULL, item TEXT NOT NULL,
        holder TEXT NOT NULL, nth INTEGER NOT NULL, PRIMARY KEY (pool, ordinal)
    ) WITHOUT ROWID""",
    "CREATE UNIQUE INDEX handed_by_holder ON handed (root, holder, pool, nth)",
    # `number` is the order of the rosters whose keys differ only in the name.
    f"""CREATE TABLE rosters (
        id INTEGER PRIMARY KEY, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL, note BLOB NOT NULL,
        number INTEGER NOT NULL
    )""",
    "CREATE UNIQUE INDEX rosters_by_key ON rosters (space, shelf, owner, place, holder, name)",
    "CREATE INDEX rosters_by_end ON rosters (space, expires_at)",
    """CREATE TABLE members (
        roster INTEGER NOT NULL, member TEXT NOT NULL, PRIMARY KEY (roster, member)
    ) WITHOUT ROWID""",
    "CREATE INDEX members_by_member ON members (member)",
    # Pools whose keys differ only in the name are a family.
    """CREATE TABLE families (
        id INTEGER PRIMARY KEY, space INTEGER NOT NULL, shelf TEXT NOT NULL, owner TEXT NOT NULL,
        holder TEXT NOT NULL, place TEXT NOT NULL
    )""",
    "CREATE UNIQUE INDEX families_by_key ON families (space, shelf, owner, holder, place)",
    # A digest (`digest_of`) of each item that a family has handed out, however long ago.
    """CREATE TABLE spent (
        family INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (family, digest)
    ) WITHOUT ROWID""",
)
UPGRADES: Final[Mapping[int, Sequence[str]]] = {1: _FIRST_TABLES}
"""The statements that raise a database to each format from the one before. An empty one has format 0."""
_STAMP = 0x45
"""The first byte of the `application_id`; the others are the version of extcli: major, minor, patch."""


class UnusableDatabase(Exception):
    """Raised for a database that this version of extcli cannot use."""


def set_options(connection: sqlite3.Connection) -> None:
    """Set the options of a connection."""
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


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
    return ".".join(str(stamp >> shift & 0xFF) for shift in (16, 8, 0)) if stamp >> 24 == _STAMP else None


def create_tables(connection: sqlite3.Connection) -> None:
    """Create missing tables, and set the options of the connection.

    Raises `UnusableDatabase`, or a busy `OperationalError` while another program writes to the file.
    """
    found = format_of(connection)
    set_options(connection)
    if found == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(found, VERSION):
            for statement in UPGRADES[number + 1]:
                connection.execute(statement)
        numbers = [min(int(each), 0xFF) for each in re.findall(r"\d+", version("extcli"))[:3]]
        stamp = _STAMP << 24 | sum(number << shift for number, shift in zip(numbers, (16, 8, 0), strict=False))
        connection.execute(f"PRAGMA application_id = {stamp}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
