"""A check of a database file: a query for rows that contradict others. Names rows without showing secrets."""

from __future__ import annotations

from typing import Final, NamedTuple


class Check(NamedTuple):
    """A query for rows that contradict others."""

    table: str
    since: int
    """The first format that has all the tables and columns of the query."""
    what: str
    """The finding, with a placeholder for each column of the query after the first."""
    statement: str
    """Selects the key, then the values of `what`."""


NUMBERED: Final = {
    "spaces": "space", "ballots": "id", "logs": "id", "pools": "id", "lists": "id", "families": "id", "rosters": "id",
    "marks": "number", "items": "number", "tallies": "since", "dead": "ballot", "dead_pools": "pool",
    "dead_lists": "list", "dead_families": "family", "dead_rosters": "root", "dead_spaces": "space",
}  # fmt: skip
"""The column of each table whose values come from `numbers`."""
IN_SPACE: Final = ("fallen", "documents", "ballots", "logs", "items", "pools", "lists", "families", "rosters")
"""The tables whose rows name their namespace."""
OWNED_BY: Final = {
    "marks": ("ballot", "ballots"), "tallies": ("ballot", "ballots"), "items": ("log", "logs"),
    "chunks": ("list", "lists"), "handed": ("pool", "pools"), "spent": ("family", "families"),
    "members": ("roster", "rosters"),
}  # fmt: skip
"""The column that names the owner of a row, and the table of the owners."""
_SINCE: Final = {
    "messages": 2,
    **dict.fromkeys(
        ("pools", "dead_pools", "lists", "dead_lists", "chunks", "handed", "rosters", "members", "dead_rosters"), 3
    ),
    **dict.fromkeys(("families", "dead_families", "spent"), 4),
}
"""The format that added a table; those of the first are left out."""
_ROW: Final = {"marks": "number", "items": "number", "messages": "number", "fallen": "rowid"} | dict.fromkeys(
    ("documents", "ballots", "logs", "pools", "lists", "families", "rosters", "chunks"), "id"
)
_NAMED: Final = ("ballots", "logs", "pools", "lists", "rosters")
_KEYED: Final = (*_NAMED, "documents", "fallen", "families", "messages")


def since(*tables: str) -> int:
    """Return the first format that has all these tables."""
    return max(_SINCE.get(table, 1) for table in tables)


def key_of(table: str) -> str:
    """Return an expression for the key of a row as people know it, and for its number.

    Names of documents, which may be PINs, and users are left out.
    """
    row = f"' row ' || {table}.{_ROW[table]}" if table in _ROW else "''"
    if table in OWNED_BY:
        column, owners = OWNED_BY[table]
        of = f"(SELECT {key_of(owners)} FROM {owners} WHERE {owners}.id = {table}.{column})"
        return f"trim(ifnull({of} || ':', '') || ifnull({row}, ''))" if table in _ROW else of
    if table not in _KEYED:
        return f"'row ' || {table}.{NUMBERED[table]}" if table in NUMBERED and table != "spaces" else "''"
    name = f"{table}.name" if table in _NAMED else "'…'"
    place = f"CASE {table}.place WHEN '' THEN '' ELSE ' in ' || {table}.place END"
    return f"trim(ifnull({table}.shelf || ' ' || {table}.owner || '/' || {name} || {place}, '') || ifnull({row}, ''))"
