"""The tables of a database: how rows are identified and found by key, and which rows are removed together with others.

Removal in steps, the copies of a namespace, counts and the checks of a file all follow from this list. The columns
are in `schema.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from emulator.engines.shapes import Key, Terms

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
    """A table: its columns of keys, times and references."""

    name: str
    key: tuple[str, ...]
    """The columns that identify a row."""
    numbered: str = ""
    """The column whose values come from `numbers`."""
    in_space: bool = False
    """Whether a row names its namespace."""
    times: tuple[str, ...] = ()
    """The columns with Unix ms."""
    owner: str = ""
    """The column with the id of the row that this one belongs to, and goes with."""
    owners: str = ""
    """The table of these."""
    removed: str = ""
    """The table that lists the ids of removed rows, until those that belong to them are deleted too."""
    removed_id: str = "id"
    """The column whose value it lists."""
    columns: str = ""
    """The columns that a new row gets values for, in the order of `insert`."""

    @property
    def insert(self) -> str:
        """The statement that adds a row."""
        return f"INSERT INTO {self.name} ({self.columns}) VALUES ({', '.join('?' for _ in self.columns.split(','))})"

    def remove_and_list(self, connection: sqlite3.Connection, id: int, removed: int | None = None) -> None:
        """Remove a row; `tidy` deletes those that belong to it. `removed` is its `removed_id`; by default the id."""
        connection.execute(f"DELETE FROM {self.name} WHERE id = ?", (id,))
        connection.execute(self.list_removed, (id if removed is None else removed,))

    def remove(self, connection: sqlite3.Connection, id: int, removed: int) -> None:
        """Remove a row as `remove_and_list` does; without a list of removed ids, with the rows that belong to it."""
        if self.removed:
            self.remove_and_list(connection, id, removed)
            return
        for table in belonging_to(self):
            connection.execute(f"DELETE FROM {table.name} WHERE {table.owner} = ?", (id,))
        connection.execute(f"DELETE FROM {self.name} WHERE id = ?", (id,))

    @property
    def list_removed(self) -> str:
        """The statement that lists an id as removed. A scan of the rows that belong to it starts again."""
        return f"INSERT OR REPLACE INTO {self.removed} ({REMOVED[self.removed]}) VALUES (?)"


_ID: Final = ("id",)
_EXPIRY: Final = ("expires_at",)
SPACES: Final = Table("spaces", ("namespace",), "space")
FALLEN: Final = Table("fallen", ("rowid",), in_space=True, times=("at",))
DOCUMENTS: Final = Table("documents", _ID, in_space=True, times=_EXPIRY, columns=f"{KEYED}, value, expires_at")
BALLOTS: Final = Table(
    "ballots", _ID, "id", in_space=True, times=(*_EXPIRY, "opens_at", "closes_at"), removed="dead",
    columns=f"id, {KEYED}, expires_at, latest, definition, {TERMS}",
)  # fmt: skip
LOGS: Final = Table("logs", _ID, "id", in_space=True, columns=f"id, {KEYED}")
POOLS: Final = Table(
    "pools", _ID, "id", in_space=True, times=_EXPIRY, removed="dead_pools",
    columns=f"id, root, {KEYED}, expires_at, closed, list, note",
)  # fmt: skip
LISTS: Final = Table(
    "lists", _ID, "id", in_space=True, times=_EXPIRY, removed="dead_lists", columns=f"id, {KEYED}, expires_at"
)
FAMILIES: Final = Table(
    "families", _ID, "id", in_space=True, removed="dead_families", columns="id, space, shelf, owner, holder, place"
)
ROSTERS: Final = Table(
    "rosters", _ID, "id", in_space=True, times=_EXPIRY, removed="dead_rosters", removed_id="root",
    columns=f"id, root, {KEYED}, expires_at",
)  # fmt: skip
MARKS: Final = Table(
    "marks", ("number",), "number", times=("cast_at",), owner="ballot", owners="ballots",
    columns="ballot, voter, slot, choice, times, cast_at, number, note, whole",
)  # fmt: skip
ITEMS: Final = Table(
    "items", ("number",), "number", in_space=True, times=("at", *_EXPIRY), owner="log", owners="logs",
    columns="number, log, space, at, expires_at, value",
)  # fmt: skip
TALLIES: Final = Table(
    "tallies", ("ballot", "choice"), "since", owner="ballot", owners="ballots", columns="ballot, choice, count, since"
)
CHUNKS: Final = Table("chunks", _ID, owner="list", owners="lists", columns="list, first, items")
HANDED: Final = Table(
    "handed", ("pool", "ordinal"), owner="pool", owners="pools", columns="pool, ordinal, root, item, holder, nth"
)
SPENT: Final = Table("spent", ("family", "digest"), owner="family", owners="families", columns="family, digest")
MEMBERS: Final = Table(
    "members", ("root", "member", "roster"), owner="roster", owners="rosters", columns="root, member, roster"
)
MESSAGES: Final = Table("messages", ("number",))
REMOVED: Final = {
    "dead": "ballot", "dead_pools": "pool", "dead_lists": "list", "dead_families": "family", "dead_rosters": "root",
    "dead_spaces": "space",
}  # fmt: skip
"""The tables of removed ids, each with the column of the id."""
TABLES: Final = {
    table.name: table
    for table in (
        SPACES, FALLEN, DOCUMENTS, BALLOTS, LOGS, ITEMS, POOLS, LISTS, FAMILIES, ROSTERS, MARKS, TALLIES, CHUNKS,
        HANDED, SPENT, MEMBERS, MESSAGES, *(Table(name, (column,), column) for name, column in REMOVED.items()),
    )
}  # fmt: skip
"""All tables but `numbers`, by name."""
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
