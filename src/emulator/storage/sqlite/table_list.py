"""The tables of a database: how rows are identified and found by key, and which rows are removed together with others.

Removal in steps, the copies of a namespace and counts all follow from this list. The columns are in `schema.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from emulator.core.keys import Key
from emulator.storage.shapes import Terms

KEYED: Final = "space, shelf, owner, name, holder, place"
"""The columns of a key, with its namespace."""
BY_KEY: Final = "space = ? AND shelf = ? AND owner = ? AND name = ? AND holder = ? AND place = ?"
BY_KEY_ALL_CHANNELS: Final = "space = ? AND shelf = ? AND owner = ? AND name = ? AND holder = ?"
KEY_COLUMNS: Final = "shelf, owner, name, place, holder"
"""In the order of `Key`."""
LISTED_ORDER: Final = "place, name, holder"
MATCHING: Final = "instr(name || char(10) || place || char(10) || holder, %s)"
"""Whether the name, channel or user contains a text, to be completed with a parameter."""
TERMS: Final = ", ".join(Terms._fields)
"""The columns of a ballot's terms."""


def terms_of(columns: Sequence[int]) -> Terms:
    """Return a ballot's `Terms` from the columns `TERMS`."""
    opens_at, closes_at, disabled, known_voters_only, *limits = columns
    return Terms(opens_at, closes_at, bool(disabled), bool(known_voters_only), *limits)


class Table(NamedTuple):
    """A table: its columns of keys and references."""

    name: str
    key: tuple[str, ...]
    """The columns that identify a row."""
    in_space: bool = False
    """Whether a row names its namespace."""
    owner: str = ""
    """The column with the id of the row that this one belongs to, and goes with."""
    owners: str = ""
    """The table of these."""
    is_tidied: bool = False
    """Whether `tidy` deletes what belongs to a removed row, because it may be much."""
    columns: str = ""
    """The columns that a new row gets values for, in the order of `insert`."""

    @property
    def insert(self) -> str:
        """The statement that adds a row."""
        return f"INSERT INTO {self.name} ({self.columns}) VALUES ({', '.join('?' for _ in self.columns.split(','))})"

    def remove(self, connection: sqlite3.Connection, id: int) -> None:
        """Remove a row, with those that belong to it, or list it for `tidy`."""
        connection.execute(f"DELETE FROM {self.name} WHERE id = ?", (id,))
        if self.is_tidied:
            connection.execute(LIST_REMOVED, (self.name, id))
            return
        for table in belonging_to(self):
            connection.execute(f"DELETE FROM {table.name} WHERE {table.owner} = ?", (id,))


LIST_REMOVED: Final = "INSERT OR IGNORE INTO dead VALUES (?, ?)"
"""Lists a row as removed: the table, and the id."""
_ID: Final = ("id",)
SPACES: Final = Table("spaces", ("namespace",))
DOCUMENTS: Final = Table("documents", _ID, in_space=True, columns=f"{KEYED}, value, expires_at")
BALLOTS: Final = Table(
    "ballots", _ID, in_space=True, is_tidied=True,
    columns=f"id, {KEYED}, expires_at, definition, {TERMS}",
)  # fmt: skip
LOGS: Final = Table("logs", _ID, in_space=True, columns=f"id, {KEYED}")
POOLS: Final = Table(
    "pools", _ID, in_space=True, is_tidied=True,
    columns=f"id, root, {KEYED}, expires_at, closed, list, note",
)  # fmt: skip
LISTS: Final = Table("lists", _ID, in_space=True, is_tidied=True, columns=f"id, {KEYED}, expires_at")
FAMILIES: Final = Table(
    "families", _ID, in_space=True, is_tidied=True, columns="id, space, shelf, owner, holder, place"
)
ROSTERS: Final = Table("rosters", _ID, in_space=True, is_tidied=True, columns=f"id, {KEYED}, expires_at, note, number")
MARKS: Final = Table(
    "marks", ("number",), owner="ballot", owners="ballots",
    columns="ballot, voter, slot, choice, times, cast_at, number, note, whole",
)  # fmt: skip
ITEMS: Final = Table(
    "items", ("number",), in_space=True, owner="log", owners="logs",
    columns="number, log, space, at, expires_at, value",
)  # fmt: skip
TALLIES: Final = Table(
    "tallies", ("ballot", "choice"), owner="ballot", owners="ballots", columns="ballot, choice, count, since"
)
CHUNKS: Final = Table("chunks", _ID, owner="list", owners="lists", columns="list, first, items")
HANDED: Final = Table(
    "handed", ("pool", "ordinal"), owner="pool", owners="pools", columns="pool, ordinal, root, item, holder, nth"
)
SPENT: Final = Table("spent", ("family", "digest"), owner="family", owners="families", columns="family, digest")
MEMBERS: Final = Table("members", ("roster", "member"), owner="roster", owners="rosters", columns="roster, member")
TABLES: Final = {
    table.name: table
    for table in (
        SPACES, DOCUMENTS, BALLOTS, LOGS, ITEMS, POOLS, LISTS, FAMILIES, ROSTERS, MARKS, TALLIES, CHUNKS,
        HANDED, SPENT, MEMBERS,
    )
}  # fmt: skip
"""All tables but `numbers` and `dead`, by name."""
THINGS: Final = (DOCUMENTS, BALLOTS, LOGS, POOLS, LISTS, ROSTERS)
"""The tables with a row for each thing that has a key."""


def belonging_to(owners: Table) -> list[Table]:
    """Return the tables whose rows belong to rows of another table."""
    return [table for table in TABLES.values() if table.owners == owners.name]


def key_columns(table: str) -> str:
    """Return the columns of a key in the order of `Key`, with the name of their table."""
    return ", ".join(f"{table}.{column}" for column in KEY_COLUMNS.split(", "))


def listing_condition(space: int, group: Key, after: Key | None, matching: str) -> tuple[str, tuple[object, ...]]:
    """Return the condition and its parameters for a listing of a namespace, to be sorted by `LISTED_ORDER`.

    `space` is the id of the namespace.
    """
    condition = "space = ? AND shelf = ? AND owner = ?"
    params: tuple[object, ...] = (space, group.kind, group.owner)
    if matching:
        condition, params = f"{condition} AND {MATCHING % '?'}", (*params, matching)
    if group.channel is not None:
        start = (after.name, after.user) if after else ()
        condition += " AND place = ?" + (" AND (name, holder) > (?, ?)" if after else "")
        return condition, (*params, group.channel, *start)
    if after:
        condition += " AND (place, name, holder) > (?, ?, ?)"
        return condition, (*params, after.channel, after.name, after.user)
    return condition, params
