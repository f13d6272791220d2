"""Checks of a database file: queries for rows that contradict others. They name rows without showing secrets.

Here are those of the ids in every table: they were given out before, are in a namespace, and name things that exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from emulator.engines.base import NEVER
from emulator.engines.sqlite.table_list import REMOVED, TABLES, Table


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


def _numbered(table: Table) -> Iterator[Check]:
    if column := table.numbered:
        yield Check(
            table.name,
            table.since,
            f"its {column} is {{}}, but the next number to be given is {{}}",
            f"SELECT {key_of(table.name)}, {column}, next FROM {table.name}, numbers"
            f" WHERE {column} >= next OR {column} < 1",
        )


def _in_space(table: Table) -> Iterator[Check]:
    if table.in_space:
        yield Check(
            table.name,
            table.since,
            "belongs to namespace {}, which does not exist",
            f"SELECT {key_of(table.name)}, space FROM {table.name}"
            " WHERE space NOT IN (SELECT space FROM spaces UNION ALL SELECT space FROM dead_spaces)",
        )


def _times(table: Table) -> Iterator[Check]:
    for column in table.times:
        yield Check(
            table.name,
            table.since,
            f"{column} is {{}}, which is no time",
            f"SELECT {key_of(table.name)}, {column} FROM {table.name} WHERE {column} NOT BETWEEN 0 AND {NEVER}",
        )


def _owned(table: Table) -> Iterator[Check]:
    if table.owners:
        owners, column = TABLES[table.owners], table.owner
        unless_removed = ""
        if owners.removed:
            listed = column if owners.removed_id == "id" else owners.removed_id
            unless_removed = f"AND {listed} NOT IN (SELECT {REMOVED[owners.removed]} FROM {owners.removed})"
        yield Check(
            table.name,
            table.since,
            f"its {column} {{}} is not in {owners.name}",
            f"SELECT {key_of(table.name)}, {column} FROM {table.name}"
            f" WHERE {column} NOT IN (SELECT id FROM {owners.name}) {unless_removed}",
        )


def _removed(table: Table) -> Iterator[Check]:
    if table.removed and table.removed_id == "id":
        yield Check(
            table.name,
            table.since,
            f"is in {table.removed}, the list of removed ones, too",
            f"SELECT {key_of(table.name)} FROM {table.name}"
            f" WHERE id IN (SELECT {REMOVED[table.removed]} FROM {table.removed})",
        )


REFERENCE_CHECKS: Final = (
    *(
        check
        for checks_of in (_numbered, _in_space, _times, _owned, _removed)
        for table in TABLES.values()
        for check in checks_of(table)
    ),
    Check(
        "numbers", 1, "has {} rows instead of one", "SELECT '', n FROM (SELECT count(*) AS n FROM numbers) WHERE n <> 1"
    ),
    Check(
        "spaces",
        1,
        "{} has the id {}, which another namespace has, too",
        "SELECT '', namespace, space FROM spaces WHERE space IN (SELECT space FROM spaces GROUP BY space"
        " HAVING count(*) > 1)",
    ),
    Check(
        "spaces",
        1,
        "{} is in dead_spaces, the list of removed ones, too",
        "SELECT '', namespace FROM spaces WHERE space IN (SELECT space FROM dead_spaces)",
    ),
)
