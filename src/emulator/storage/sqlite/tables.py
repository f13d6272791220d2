"""The format of a database: its number, options and tables, and which rows are removed together with others.

The schema, dumps, loads, purges, lists and counts all follow from this list. The columns of a key have the names of the
parts of `Key`; `space` is the id of a namespace, and a reset gives the namespace a new id.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version

from emulator.core.keys import Key
from emulator.storage import records
from emulator.storage.records import Record
from emulator.storage.shapes import Terms

KEY = ", ".join(Key._fields)
"""The columns of a key, in the order of `Key`."""
SPACE_AND_KEY = f"space, {KEY}"
BY_KEY = "space = ? AND kind = ? AND owner = ? AND name = ? AND channel = ? AND user = ?"
BY_KEY_ALL_CHANNELS = "space = ? AND kind = ? AND owner = ? AND name = ? AND user = ?"
TERMS = ", ".join(Terms._fields)
"""The columns of a ballot's terms."""
_KEY_COLUMNS = "space INTEGER, kind TEXT, owner TEXT, name TEXT, channel TEXT, user TEXT"


@dataclass(frozen=True, eq=False)
class Table:
    """A table. Its columns may not be null, except those that say so."""

    name: str
    columns: str
    """The columns with their types. `insert` gives a value to each that has no default."""
    key: str = "id"
    """The columns that identify a row: a number, or several that are then its order in storage."""
    unique: Mapping[str, str] = field(default_factory=dict)
    """The names of its unique indexes, with their columns."""
    indexes: Mapping[str, str] = field(default_factory=dict)
    """The names of its other indexes, with their columns."""
    owner: str = "spaces"
    """The table with the rows that rows of this one belong to, and go with; empty for none."""
    owner_id: str = "space"
    """The column with the id of that row."""
    record: type[Record] | None = None
    """The type of record for each row, if a row is a thing that has a key. For a log, it is that of its entries."""
    is_listed: str = "0"
    """The condition for the rows that the catalog lists while they are alive, and whose end a purge reports."""

    @property
    def statements(self) -> Iterator[str]:
        """The statements that create the table."""
        columns = self.columns.split(", ")
        columns = [column if column.endswith("NULL") else f"{column} NOT NULL" for column in columns]
        if self.key:
            columns.append(f"PRIMARY KEY ({self.key})")
        yield f"CREATE TABLE {self.name} ({', '.join(columns)}){' WITHOUT ROWID' if ',' in self.key else ''}"
        for unique, indexes in (("UNIQUE ", self.unique), ("", self.indexes)):
            for index, indexed in indexes.items():
                yield f"CREATE {unique}INDEX {index} ON {self.name} ({indexed})"

    @cached_property
    def insert(self) -> str:
        """The statement that adds a row."""
        given = [column for column in self.columns.split(", ") if "DEFAULT" not in column]
        names = ", ".join(column.partition(" ")[0] for column in given)
        values = ", ".join("?" * len(given))
        return f"INSERT INTO {self.name} ({names}) VALUES ({values})"

    @cached_property
    def contents(self) -> list[Table]:
        """The tables whose rows belong to rows of this one."""
        return [table for table in TABLES if table.owner == self.name]


_THING_COLUMNS = f"id INTEGER, {_KEY_COLUMNS}"
_EXPIRING_COLUMNS = f"{_THING_COLUMNS}, expires_at INTEGER"
_CHANNEL_LAST = "space, kind, owner, name, user, channel"
"""For queries on all channels."""
_BY_CHANNEL = "space, kind, owner, channel, name, user"

NUMBERS = Table("numbers", "next INTEGER", "", owner="")
SPACES = Table("spaces", "namespace TEXT, space INTEGER", "namespace", owner="")
DEAD = Table("dead", "owner TEXT, id INTEGER", "owner, id", owner="")
"""Removed rows, by table and id, whose contents have yet to be deleted (`purge.py`)."""
DOCUMENTS = Table(
    "documents", f"{_EXPIRING_COLUMNS}, value BLOB", record=records.DocumentRecord, is_listed="1",
    unique={"documents_by_key": "space, kind, owner, name, channel, user"},
    indexes={"documents_by_end": "space, expires_at"},
)  # fmt: skip
BALLOTS = Table(
    "ballots", f"{_EXPIRING_COLUMNS}, definition BLOB NULL, {', '.join(f'{term} INTEGER' for term in Terms._fields)}",
    record=records.BallotRecord, is_listed="1",
    unique={"ballots_by_key": _CHANNEL_LAST},
    indexes={"ballots_by_channel": _BY_CHANNEL, "ballots_by_end": "space, expires_at"},
)  # fmt: skip
# A voter's casts for one choice. The number ascends with time, so that a million entries are read in storage order.
ENTRIES = Table(
    "entries",
    "number INTEGER, ballot INTEGER, voter TEXT, choice TEXT, times INTEGER, cast_at INTEGER, note BLOB",
    key="number", owner="ballots", owner_id="ballot",
    unique={"entries_by_voter": "ballot, voter, choice"},
    indexes={"entries_by_age": "ballot, cast_at"},  # then by number, the primary key
)  # fmt: skip
# `since` is the number of the cast from which on the choice has had casts without a gap.
TALLIES = Table(
    "tallies", "ballot INTEGER, choice TEXT, count INTEGER, since INTEGER",
    key="ballot, choice", owner="ballots", owner_id="ballot",
    indexes={"tallies_by_count": "ballot, count DESC, since"},
)  # fmt: skip
LOGS = Table(
    "logs", _THING_COLUMNS, record=records.ItemRecord,
    unique={"logs_by_key": _CHANNEL_LAST}, indexes={"logs_by_channel": _BY_CHANNEL},
)  # fmt: skip
ITEMS = Table(
    "items", "number INTEGER, log INTEGER, space INTEGER, at INTEGER, expires_at INTEGER, value BLOB",
    key="number", owner="logs", owner_id="log",
    indexes={"items_by_age": "log, at, number, expires_at", "items_by_end": "space, expires_at"},
)  # fmt: skip
# The next item is at `position` of the list; they expire together. A dropped pool that has a history stays, without a
# list, until its expiry.
POOLS = Table(
    "pools", f"{_EXPIRING_COLUMNS}, list INTEGER NULL, note BLOB, family INTEGER, position INTEGER DEFAULT 0",
    record=records.PoolRecord, is_listed="list IS NOT NULL",
    indexes={"pools_by_key": _CHANNEL_LAST, "pools_by_end": "space, expires_at", "pools_by_list": "list"},
)  # fmt: skip
# A list is used by a pool or not yet.
LISTS = Table(
    "lists", _EXPIRING_COLUMNS, record=records.ListRecord,
    unique={"lists_by_key": _CHANNEL_LAST}, indexes={"lists_by_end": "space, expires_at"},
)  # fmt: skip
# Consecutive items of a list, up to position `end`.
CHUNKS = Table(
    "chunks", "list INTEGER, end INTEGER, items BLOB", key="", owner="lists", owner_id="list",
    unique={"chunks_by_list": "list, end"},
)  # fmt: skip
# `ordinal` counts the pool's handed-out items.
HANDED = Table(
    "handed", "pool INTEGER, ordinal INTEGER, user TEXT, item TEXT",
    key="pool, ordinal", owner="pools", owner_id="pool",
    indexes={"handed_by_user": "pool, user, ordinal"},
)  # fmt: skip
# Pools whose keys differ only in the name are a family.
FAMILIES = Table(
    "families", "id INTEGER, space INTEGER, kind TEXT, owner TEXT, channel TEXT, user TEXT",
    unique={"families_by_key": "space, kind, owner, channel, user"},
)  # fmt: skip
# A digest (`item_digest`) of each item that a family has handed out, however long ago.
SPENT = Table("spent", "family INTEGER, digest BLOB", key="family, digest", owner="families", owner_id="family")
# `number` is the order of the rosters whose keys differ only in the name.
ROSTERS = Table(
    "rosters", f"{_EXPIRING_COLUMNS}, note BLOB, number INTEGER", record=records.RosterRecord,
    unique={"rosters_by_key": "space, kind, owner, channel, user, name"},
    indexes={"rosters_by_end": "space, expires_at"},
)  # fmt: skip
MEMBERS = Table(
    "members", "roster INTEGER, member TEXT", key="roster, member", owner="rosters", owner_id="roster",
    indexes={"members_by_member": "member"},
)  # fmt: skip
TABLES = (
    NUMBERS, SPACES, DEAD, DOCUMENTS, BALLOTS, ENTRIES, TALLIES, LOGS, ITEMS, POOLS, LISTS, CHUNKS, HANDED, FAMILIES,
    SPENT, ROSTERS, MEMBERS,
)  # fmt: skip
THING_TABLES = tuple(table for table in TABLES if table.record)
"""The tables with a row for each thing that has a key."""
EXPIRING_TABLES = tuple(table for table in THING_TABLES if "expires_at" in table.columns)
LISTED_TABLES = tuple(table for table in TABLES if table.is_listed != "0")
"""The tables whose rows listings may show; `is_listed` says which rows."""


def qualified_key(table: str) -> str:
    """Return the columns of a key in the order of `Key`, with the name of their table."""
    return ", ".join(f"{table}.{part}" for part in Key._fields)


FORMAT = 1
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
_FIRST_BYTE = 0x45
"""The first byte of the `application_id`; the others are the version of extcli: major, minor, patch."""


class UnusableDatabase(Exception):
    """Raised for a database that this version of extcli cannot use."""


def read_format(connection: sqlite3.Connection) -> int:
    """Return the format of a database that this version can use, 0 for an empty one. Raises `UnusableDatabase`."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    writer = read_writer(connection)
    if not found and connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
        return 0
    if writer is None:
        raise UnusableDatabase("it is the database of another program")
    if not 0 < found <= FORMAT:
        raise UnusableDatabase(
            f"its data has format {found}, and this version reads format {FORMAT}; use the version of extcli "
            f"that wrote it ({writer}), or another file"
        )
    return int(found)


def read_writer(connection: sqlite3.Connection) -> str | None:
    """Return the version of extcli that created the database or raised it to its format; `None` if unknown."""
    (stamp,) = connection.execute("PRAGMA application_id").fetchone()
    first, *numbers = stamp.to_bytes(4, signed=True)
    return ".".join(map(str, numbers)) if first == _FIRST_BYTE else None


def create_tables(connection: sqlite3.Connection, synchronous: str) -> None:
    """Create missing tables, and set the options of the connection. `synchronous` is SQLite's option.

    Raises `UnusableDatabase`, or a busy `OperationalError` while another program writes to the file; then close the
    connection, which takes back what was begun.
    """
    found = read_format(connection)
    for pragma in (f"synchronous = {synchronous}", *PRAGMAS):
        connection.execute(f"PRAGMA {pragma}")
    if found == FORMAT:
        return
    connection.execute("BEGIN IMMEDIATE")
    if not found:
        for statement in [each for table in TABLES for each in table.statements]:
            connection.execute(statement)
        connection.execute(NUMBERS.insert, (1,))
    for number in range(max(found, 1), FORMAT):
        for statement in UPGRADES[number + 1]:
            connection.execute(statement)
    numbers = [min(int(each), 0xFF) for each in re.findall(r"\d+", version("extcli"))]
    stamp = bytes((_FIRST_BYTE, *numbers, 0, 0, 0))[:4]
    connection.execute(f"PRAGMA application_id = {int.from_bytes(stamp)}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")
