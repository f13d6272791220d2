"""The tables of a database file, and making a file ours.

`space` is the number of a namespace; a reset gives the namespace a new one. `dead` and `dead_…` name what is out of
reach already and still has rows to delete.
"""

from __future__ import annotations

import re
import sqlite3

VERSION = 3

PRAGMAS = (
    # Voters of a large ballot vote in no order, and each cast writes the pages it touches whole: small ones made such
    # casts a quarter cheaper, and others no dearer. So the log gets its usual 4 MB with more pages.
    "page_size = 1024",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "wal_autocheckpoint = 4000",
    "cache_size = -32768",
    "cell_size_check = ON",  # a page that is destroyed in part is met as such
)

_KEY = "shelf TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, holder TEXT NOT NULL, place TEXT NOT NULL"
_KEYED = "space, shelf, owner, name, holder, place"  # place last: some questions are about all of them

TABLES = (
    "CREATE TABLE numbers (next INTEGER NOT NULL)",
    "INSERT INTO numbers VALUES (1)",
    "CREATE TABLE spaces (namespace TEXT PRIMARY KEY, space INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE dead_spaces (space INTEGER PRIMARY KEY)",
    # What fell due and was replaced or dropped since; `purge` still has to say so.
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
    # A voter's casts for one choice. `slot` tells the rows of a voter apart and stays when the choice is replaced. Kept
    # by number, which rises with time, so that a log of a million is read in the order in which it lies.
    """CREATE TABLE marks (
        number INTEGER PRIMARY KEY, ballot INTEGER NOT NULL, voter TEXT NOT NULL, slot INTEGER NOT NULL,
        choice TEXT NOT NULL, times INTEGER NOT NULL, cast_at INTEGER NOT NULL, note BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX marks_by_voter ON marks (ballot, voter, slot)",
    "CREATE INDEX marks_by_age ON marks (ballot, cast_at)",  # and by number: SQLite ends every index with it
    # `since` is the number of the cast that ended the last gap.
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
ADDED = {
    2: (
        # What processes tell each other. The newest few are kept; `number` is never given twice.
        f"""CREATE TABLE messages (
            number INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, sender TEXT NOT NULL, {_KEY},
            body BLOB NOT NULL
        )""",
    ),
    3: (
        # A pool from a supply where there was none to its end: one row. A dropped one stays, closed, until its end, as
        # long as there is something to remember. `root` is shared by all rows that one key has had without a gap.
        f"""CREATE TABLE pools (
            id INTEGER PRIMARY KEY, root INTEGER NOT NULL, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL,
            closed INTEGER NOT NULL DEFAULT 0, list INTEGER NOT NULL, position INTEGER NOT NULL DEFAULT 0,
            handed INTEGER NOT NULL DEFAULT 0, note BLOB NOT NULL
        )""",
        f"CREATE INDEX pools_by_key ON pools ({_KEYED}, closed)",
        "CREATE INDEX pools_by_end ON pools (space, expires_at)",
        "CREATE TABLE dead_pools (pool INTEGER PRIMARY KEY)",
        # `pool` is the one that hands out from the list, if any; then the list ends with it.
        f"""CREATE TABLE lists (
            id INTEGER PRIMARY KEY, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL,
            size INTEGER NOT NULL DEFAULT 0, pool INTEGER
        )""",
        f"CREATE UNIQUE INDEX lists_by_key ON lists ({_KEYED})",
        "CREATE INDEX lists_by_end ON lists (space, expires_at)",
        "CREATE TABLE dead_lists (list INTEGER PRIMARY KEY)",
        # Items that stand side by side in a list; `first` is the place of the first of them.
        """CREATE TABLE chunks (
            id INTEGER PRIMARY KEY, list INTEGER NOT NULL, first INTEGER NOT NULL, items BLOB NOT NULL
        )""",
        "CREATE UNIQUE INDEX chunks_by_list ON chunks (list, first)",
        # `ordinal` counts what the pool handed out, `nth` what this holder has of it. Kept in the order of handing out,
        # so that rows are added at one end. Items come in no order, so they are looked for by a short sum of theirs:
        # an index of the items themselves would be five times as large, and each draw touches a page of it.
        """CREATE TABLE handed (
            pool INTEGER NOT NULL, ordinal INTEGER NOT NULL, root INTEGER NOT NULL, item TEXT NOT NULL,
            sum INTEGER NOT NULL, holder TEXT NOT NULL, nth INTEGER NOT NULL, PRIMARY KEY (pool, ordinal)
        ) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX handed_by_holder ON handed (root, holder, pool, nth)",
        "CREATE INDEX handed_by_sum ON handed (root, sum)",
        # `root` is shared by all rosters whose keys differ in their names only.
        f"""CREATE TABLE rosters (
            id INTEGER PRIMARY KEY, root INTEGER NOT NULL, space INTEGER NOT NULL, {_KEY}, expires_at INTEGER NOT NULL
        )""",
        "CREATE UNIQUE INDEX rosters_by_key ON rosters (space, shelf, owner, holder, place, name)",
        "CREATE INDEX rosters_by_end ON rosters (space, expires_at)",
        # One descent finds all rosters that a name is on.
        """CREATE TABLE members (
            root INTEGER NOT NULL, member TEXT NOT NULL, roster INTEGER NOT NULL, PRIMARY KEY (root, member, roster)
        ) WITHOUT ROWID""",
        # The members are walked through once for all rosters that are gone; this is how far the walk has come.
        """CREATE TABLE dead_rosters (
            root INTEGER PRIMARY KEY, member TEXT NOT NULL DEFAULT '', roster INTEGER NOT NULL DEFAULT 0
        )""",
    ),
}
"""What a file of an earlier format lacks, by the format that brought it."""


class NotOurs(Exception):
    """The file is a database, but not one that this version may touch."""


def _names(version: int) -> list[str]:
    """Of the tables and indexes that a file of this format has."""
    some = TABLES if version else ()
    statements = (*some, *(each for number, added in ADDED.items() if number <= version for each in added))
    return [found[1] for each in statements if (found := _CREATED.match(each))]


def prepare(connection: sqlite3.Connection) -> None:
    """Make an empty database ours. Safe beside another process that does the same, though SQLite may then say busy."""
    connection.execute("BEGIN")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.execute("COMMIT")
    if version > VERSION:
        raise NotOurs(f"written by a newer version (format {version}; this one knows up to {VERSION})")
    if version == 0 and names:
        raise NotOurs("it is a database of something else")
    lacking = [name for name in _names(version) if name not in names]
    if lacking or (version and connection.execute("SELECT next FROM numbers").fetchone() is None):
        missing = lacking[0] if lacking else "what belongs in numbers"
        raise NotOurs(f"it is no whole extcli database: {missing} is not in it; was it rescued in part only?")
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    if version == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        later = [statement for number, some in ADDED.items() if number > found for statement in some]
        for statement in (*(TABLES if found == 0 else ()), *later, f"PRAGMA user_version = {VERSION}"):
            connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
