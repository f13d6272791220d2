"""A check of a database file: a query for rows that contradict others. Names rows without showing secrets."""

from __future__ import annotations

from typing import Final, NamedTuple

from emulator.engines.sqlite.table_list import REMOVED, TABLES


class Check(NamedTuple):
    """A query for rows that contradict others."""

    table: str
    since: int
    """The first format that has all the tables and columns of the query."""
    what: str
    """The finding, with a placeholder for each column of the query after the first."""
    statement: str
    """Selects the key, then the values of `what`."""


_NAMED: Final = ("ballots", "logs", "pools", "lists", "rosters")
_KEYED: Final = (*_NAMED, "documents", "fallen", "families", "messages")


def key_of(table: str) -> str:
    """Return an expression for the key of a row as people know it, and for its number.

    Names of documents, which may be PINs, and users are left out.
    """
    if table not in TABLES:
        return "''"
    column, *others = TABLES[table].key
    row = f"' row ' || {table}.{column}" if not others else "''"
    if owners := TABLES[table].owners:
        of = f"(SELECT {key_of(owners)} FROM {owners} WHERE {owners}.id = {table}.{TABLES[table].owner})"
        return of if others else f"trim(ifnull({of} || ':', '') || ifnull({row}, ''))"
    if table not in _KEYED:
        return f"'row ' || {table}.{column}" if table in REMOVED else "''"
    name = f"{table}.name" if table in _NAMED else "'…'"
    place = f"CASE {table}.place WHEN '' THEN '' ELSE ' in ' || {table}.place END"
    return f"trim(ifnull({table}.shelf || ' ' || {table}.owner || '/' || {name} || {place}, '') || ifnull({row}, ''))"
