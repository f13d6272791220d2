"""Checks of a database file: queries for rows that contradict others. They name rows without showing secrets.

First those of the ids in every table: they were given out before, are in a namespace, and name things that exist. Then
of ballots, logs and messages with what belongs to them, and of pools, lists and rosters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from emulator.engines.base import NEVER
from emulator.engines.sqlite.relay import MAX_ROWS
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


_CASTS: Final = """
    SELECT marks.ballot AS ballot, marks.choice AS choice, sum(times) AS casts FROM marks
    WHERE marks.ballot IN (SELECT id FROM ballots) GROUP BY marks.ballot, marks.choice
"""
COUNT_CHECKS: Final = (
    Check(
        "ballots",
        1,
        "has terms that no ballot has",
        f"SELECT {key_of('ballots')} FROM ballots WHERE disabled NOT IN (0, 1) OR known_voters_only NOT IN (0, 1)"
        " OR per_voter < 1 OR per_choice < 1 OR choices < 1",
    ),
    Check(
        "ballots",
        6,
        "the time of its latest cast is {}, but the casts have {}",
        f"SELECT {key_of('ballots')}, latest, found FROM (SELECT *, coalesce((SELECT max(cast_at) FROM marks"
        " WHERE ballot = ballots.id), 0) AS found FROM ballots) AS ballots"
        f" WHERE latest <> {NEVER} AND latest <> found",
    ),
    Check(
        "marks",
        6,
        "was cast before the one in front of it, although the ballot is marked as in order",
        f"SELECT {key_of('marks')} FROM (SELECT *, lag(cast_at) OVER (PARTITION BY ballot ORDER BY number) AS previous"
        " FROM marks) AS marks WHERE previous > cast_at"
        f" AND ballot IN (SELECT id FROM ballots WHERE latest <> {NEVER})",
    ),
    Check("marks", 1, "has {} casts", f"SELECT {key_of('marks')}, times FROM marks WHERE times < 1"),
    Check("marks", 1, "has slot {}", f"SELECT {key_of('marks')}, slot FROM marks WHERE slot < 0"),
    Check("marks", 6, "whole is {}", f"SELECT {key_of('marks')}, whole FROM marks WHERE whole NOT IN (0, 1)"),
    Check(
        "marks",
        1,
        "is one of {} entries of one voter for one choice",
        f"SELECT {key_of('marks')}, count(*) FROM marks GROUP BY ballot, voter, choice HAVING count(*) > 1",
    ),
    Check(
        "tallies",
        1,
        "counts {} casts for a choice, but the entries have {}",
        f"SELECT {key_of('tallies')}, count, coalesce(casts, 0) FROM tallies LEFT JOIN ({_CASTS}) AS found"
        " ON found.ballot = tallies.ballot AND found.choice = tallies.choice"
        " WHERE tallies.ballot IN (SELECT id FROM ballots) AND (casts IS NULL OR casts <> count)",
    ),
    Check(
        "tallies",
        1,
        "has no count for a choice that has {} casts",
        f"SELECT (SELECT {key_of('ballots')} FROM ballots WHERE id = found.ballot), casts FROM ({_CASTS}) AS found"
        " WHERE NOT EXISTS (SELECT 1 FROM tallies WHERE ballot = found.ballot AND choice = found.choice)",
    ),
    Check(
        "tallies",
        1,
        "two choices have had casts since the same cast",
        f"SELECT {key_of('tallies')} FROM tallies GROUP BY ballot, since HAVING count(*) > 1",
    ),
    Check(
        "logs",
        1,
        "has no entries, and a log exists only while it has some",
        f"SELECT {key_of('logs')} FROM logs WHERE space IN (SELECT space FROM spaces)"
        " AND NOT EXISTS (SELECT 1 FROM items WHERE log = logs.id)",
    ),
    Check(
        "items",
        1,
        "belongs to namespace {}, but its log to {}",
        f"SELECT {key_of('items')}, items.space, logs.space FROM items JOIN logs ON logs.id = log"
        " WHERE items.space <> logs.space",
    ),
    Check(
        "messages",
        2,
        "the newest has number {}, but sqlite_sequence has {}",
        "SELECT '', newest, noted FROM (SELECT (SELECT max(number) FROM messages) AS newest,"
        " (SELECT max(seq) FROM sqlite_sequence WHERE name = 'messages') AS noted)"
        " WHERE newest IS NOT NULL AND newest IS NOT noted",
    ),
    Check(
        "sqlite_sequence",
        2,
        "has {} rows for the table {}",
        "SELECT '', count(*), name FROM sqlite_sequence GROUP BY name HAVING count(*) > 1 OR name IS NOT 'messages'",
    ),
    Check(
        "messages",
        2,
        "there are {} of the numbers {} to {}",
        "SELECT '', n, first, last FROM (SELECT count(*) AS n, min(number) AS first, max(number) AS last FROM messages)"
        " WHERE n > 0 AND n <> last - first + 1",
    ),
    Check(
        "messages",
        2,
        f"there are {{}}, and {MAX_ROWS} are kept",
        f"SELECT '', n FROM (SELECT count(*) AS n FROM messages) WHERE n > {MAX_ROWS}",
    ),
)


_POOL_KEY: Final = "space, shelf, owner, name, holder, place"
_ROSTER_KEY: Final = "space, shelf, owner, holder, place"
_FAMILY: Final = """
    SELECT families.id FROM families JOIN pools USING (space, shelf, owner, holder, place) WHERE pools.id = handed.pool
"""


def _roots(table: str, key: str) -> list[Check]:
    """Return the checks that rows of one key, and no others, have one root."""
    return [
        Check(
            table,
            3,
            "its root is not that of the others of its key",
            f"SELECT {key_of(table)} FROM {table} GROUP BY {key} HAVING count(DISTINCT root) > 1",
        ),
        Check(
            table,
            3,
            "another key has the same root",
            f"SELECT {key_of(table)} FROM (SELECT *, min(id) FROM {table} GROUP BY root, {key}) AS {table}"
            " GROUP BY root HAVING count(*) > 1",
        ),
        Check(table, 3, "its root is {}", f"SELECT {key_of(table)}, root FROM {table} WHERE root NOT BETWEEN 1 AND id"),
    ]


REWARD_CHECKS: Final = (
    *_roots("pools", _POOL_KEY),
    *_roots("rosters", _ROSTER_KEY),
    Check("pools", 3, "closed is {}", f"SELECT {key_of('pools')}, closed FROM pools WHERE closed NOT IN (0, 1)"),
    Check(
        "pools",
        3,
        "is dropped, but has the list {}",
        f"SELECT {key_of('pools')}, list FROM pools WHERE closed = 1 AND list <> 0",
    ),
    Check(
        "pools",
        3,
        "is dropped, but has handed out nothing",
        f"SELECT {key_of('pools')} FROM pools WHERE closed = 1 AND handed < 1",
    ),
    Check(
        "pools",
        3,
        "is one of {} with the same key that are not dropped",
        f"SELECT {key_of('pools')}, count(*) FROM pools WHERE closed = 0 GROUP BY {_POOL_KEY} HAVING count(*) > 1",
    ),
    Check(
        "pools",
        3,
        "its list {} does not exist, or is that of another pool",
        f"SELECT {key_of('pools')}, list FROM pools WHERE closed = 0"
        " AND NOT EXISTS (SELECT 1 FROM lists WHERE lists.id = pools.list AND lists.pool = pools.id)",
    ),
    Check(
        "pools",
        3,
        "expires at {}, but its list at {}",
        f"SELECT {key_of('pools')}, pools.expires_at, lists.expires_at FROM pools JOIN lists ON lists.id = pools.list"
        " WHERE closed = 0 AND pools.expires_at <> lists.expires_at",
    ),
    Check(
        "pools",
        3,
        "is at item {} of a list of {}",
        f"SELECT {key_of('pools')}, position, size FROM pools JOIN lists ON lists.id = pools.list"
        " WHERE closed = 0 AND position NOT BETWEEN 0 AND size",
    ),
    Check(
        "pools",
        3,
        "counts {} items as handed out, but has rows of {}",
        f"SELECT {key_of('pools')}, handed, found FROM (SELECT *, (SELECT count(*) FROM handed WHERE pool = pools.id)"
        " AS found FROM pools) AS pools WHERE handed <> found",
    ),
    Check(
        "handed",
        3,
        "the {} items are numbered {} to {}",
        f"SELECT {key_of('handed')}, count(*), min(ordinal), max(ordinal) FROM handed"
        " WHERE pool IN (SELECT id FROM pools) GROUP BY pool HAVING min(ordinal) <> 1 OR max(ordinal) <> count(*)",
    ),
    Check(
        "handed",
        3,
        "the {} items of one user are numbered {} to {}",
        f"SELECT {key_of('handed')}, count(*), min(nth), max(nth) FROM handed WHERE pool IN (SELECT id FROM pools)"
        " GROUP BY pool, holder HAVING min(nth) <> 1 OR max(nth) <> count(*)",
    ),
    Check(
        "handed",
        3,
        "an item has the root {}, but its pool {}",
        f"SELECT {key_of('handed')}, handed.root, pools.root FROM handed JOIN pools ON pools.id = pool"
        " WHERE handed.root <> pools.root",
    ),
    Check(
        "handed",
        3,
        "an item was handed out {} times",
        f"SELECT {key_of('handed')}, count(*) FROM handed WHERE pool IN (SELECT id FROM pools)"
        " GROUP BY root, item HAVING count(*) > 1",
    ),
    Check(
        "spent",
        4,
        "lacks an item that was handed out",
        f"SELECT {key_of('handed')} FROM handed WHERE pool IN (SELECT id FROM pools)"
        f" AND NOT EXISTS (SELECT 1 FROM spent WHERE family = ({_FAMILY}) AND digest = digest_of(item))",
    ),
    Check(
        "spent",
        4,
        "a digest has {} bytes instead of 16",
        f"SELECT {key_of('spent')}, length(digest) FROM spent WHERE length(digest) <> 16",
    ),
    Check(
        "lists",
        3,
        "is used by pool {}, which has another list or does not exist",
        f"SELECT {key_of('lists')}, pool FROM lists WHERE pool IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM pools WHERE pools.id = lists.pool AND pools.list = lists.id AND closed = 0)",
    ),
    Check(
        "lists",
        3,
        "counts {} items, but its chunks have {}",
        f"SELECT {key_of('lists')}, size, found FROM (SELECT *, coalesce((SELECT sum(items_in(items)) FROM chunks"
        " WHERE list = lists.id), 0) AS found FROM lists) AS lists WHERE size <> found",
    ),
    Check(
        "chunks",
        3,
        "begins with item {}, but the one in front of it ends with item {}",
        f"SELECT {key_of('chunks')}, first, expected - 1 FROM (SELECT *, coalesce(lag(first + items_in(items))"
        " OVER (PARTITION BY list ORDER BY first), 0) AS expected FROM chunks) AS chunks"
        " WHERE first <> expected AND list IN (SELECT id FROM lists)",
    ),
    Check(
        "members",
        3,
        "a member has the root {}, but its roster {}",
        f"SELECT {key_of('members')}, members.root, rosters.root FROM members JOIN rosters ON rosters.id = roster"
        " WHERE members.root <> rosters.root",
    ),
)
