"""Checks of a database file: queries for rows that contradict others. They name rows without showing secrets.

First the ids in every table: they were assigned before, are in a namespace, and name existing records. Then
of the contents: counts, and the order in which rows were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from emulator.engines.shapes import NEVER
from emulator.engines.sqlite.relay import MAX_ROWS
from emulator.engines.sqlite.schema import first_format_with
from emulator.engines.sqlite.table_list import KEYED, REMOVED, TABLES, Table


class Check(NamedTuple):
    """A query for rows that contradict others."""

    table: str
    what: str
    """The finding, with a placeholder for each column of the query after the first."""
    statement: str
    """Selects the key, then the values of `what`."""

    @property
    def since(self) -> int:
        """The first format of the file that has all tables and columns of the query."""
        return first_format_with(self.statement)


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


def _checks_of_numbers(table: Table) -> Iterator[Check]:
    if column := table.numbered:
        yield Check(
            table.name,
            f"its {column} is {{}}, but the next number to be given is {{}}",
            f"SELECT {key_of(table.name)}, {column}, next FROM {table.name}, numbers"
            f" WHERE {column} >= next OR {column} < 1",
        )


def _in_space(table: Table) -> Iterator[Check]:
    if table.in_space:
        yield Check(
            table.name,
            "belongs to namespace {}, which does not exist",
            f"SELECT {key_of(table.name)}, space FROM {table.name}"
            " WHERE space NOT IN (SELECT space FROM spaces UNION ALL SELECT space FROM dead_spaces)",
        )


def _times(table: Table) -> Iterator[Check]:
    for column in table.times:
        yield Check(
            table.name,
            f"{column} is {{}}, which is not a time",
            f"SELECT {key_of(table.name)}, {column} FROM {table.name} WHERE {column} NOT BETWEEN 0 AND {NEVER}",
        )


def _checks_of_owners(table: Table) -> Iterator[Check]:
    if table.owners:
        owners, column = TABLES[table.owners], table.owner
        unless_removed = ""
        if owners.removed:
            listed = column if owners.removed_id == "id" else owners.removed_id
            unless_removed = f"AND {listed} NOT IN (SELECT {REMOVED[owners.removed]} FROM {owners.removed})"
        yield Check(
            table.name,
            f"its {column} {{}} is not in {owners.name}",
            f"SELECT {key_of(table.name)}, {column} FROM {table.name}"
            f" WHERE {column} NOT IN (SELECT id FROM {owners.name}) {unless_removed}",
        )


def _removed(table: Table) -> Iterator[Check]:
    if table.removed and table.removed_id == "id":
        yield Check(
            table.name,
            f"is in {table.removed}, the list of removed ones, too",
            f"SELECT {key_of(table.name)} FROM {table.name}"
            f" WHERE id IN (SELECT {REMOVED[table.removed]} FROM {table.removed})",
        )


REFERENCE_CHECKS: Final = (
    *(
        check
        for checks_of in (_checks_of_numbers, _in_space, _times, _checks_of_owners, _removed)
        for table in TABLES.values()
        for check in checks_of(table)
    ),
    Check(
        "numbers", "has {} rows instead of one", "SELECT '', n FROM (SELECT count(*) AS n FROM numbers) WHERE n <> 1"
    ),
    Check(
        "spaces",
        "{} has the id {}, which another namespace has, too",
        "SELECT '', namespace, space FROM spaces WHERE space IN (SELECT space FROM spaces GROUP BY space"
        " HAVING count(*) > 1)",
    ),
    Check(
        "spaces",
        "{} is in dead_spaces, the list of removed ones, too",
        "SELECT '', namespace FROM spaces WHERE space IN (SELECT space FROM dead_spaces)",
    ),
)


_CASTS: Final = """
    SELECT marks.ballot AS ballot, marks.choice AS choice, sum(times) AS casts FROM marks
    WHERE marks.ballot IN (SELECT id FROM ballots) GROUP BY marks.ballot, marks.choice
"""
_FAMILY: Final = """
    SELECT families.id FROM families JOIN pools USING (space, shelf, owner, holder, place) WHERE pools.id = handed.pool
"""


def _roots(table: str, key: str) -> dict[str, str]:
    """Return checks that find a root with rows of several keys, and a key with rows of several roots."""
    return {
        "its root differs from the others of its key": f"""
            NULL FROM {table} GROUP BY {key} HAVING count(DISTINCT root) > 1
        """,
        "another key has the same root": f"""
            NULL FROM (SELECT *, min(id) FROM {table} GROUP BY root, {key}) AS {table}
            GROUP BY root HAVING count(*) > 1
        """,
        "its root is {}": f"root FROM {table} WHERE root NOT BETWEEN 1 AND id",
    }


_CONTRADICTIONS: Final = {
    "ballots": {
        "has terms that no ballot has": """
            NULL FROM ballots WHERE disabled NOT IN (0, 1) OR known_voters_only NOT IN (0, 1)
            OR per_voter < 1 OR per_choice < 1 OR choices < 1
        """,
        "the time of its latest cast is {}, but the casts have {}": f"""
            latest, found FROM (
                SELECT *, coalesce((SELECT max(cast_at) FROM marks WHERE ballot = ballots.id), 0) AS found FROM ballots
            ) AS ballots WHERE latest <> {NEVER} AND latest <> found
        """,
    },
    "marks": {
        "was cast before the one in front of it, although the ballot is marked as in order": f"""
            NULL FROM (
                SELECT *, lag(cast_at) OVER (PARTITION BY ballot ORDER BY number) AS previous FROM marks
            ) AS marks
            WHERE previous > cast_at AND ballot IN (SELECT id FROM ballots WHERE latest <> {NEVER})
        """,
        "has {} casts": "times FROM marks WHERE times < 1",
        "has slot {}": "slot FROM marks WHERE slot < 0",
        "whole is {}": "whole FROM marks WHERE whole NOT IN (0, 1)",
        "is one of {} entries of one voter for one choice": """
            count(*) FROM marks GROUP BY ballot, voter, choice HAVING count(*) > 1
        """,
    },
    "tallies": {
        "counts {} casts for a choice, but the entries have {}": f"""
            count, coalesce(casts, 0) FROM tallies LEFT JOIN ({_CASTS}) AS found
            ON found.ballot = tallies.ballot AND found.choice = tallies.choice
            WHERE tallies.ballot IN (SELECT id FROM ballots) AND (casts IS NULL OR casts <> count)
        """,
        "two choices have had casts since the same cast": """
            NULL FROM tallies GROUP BY ballot, since HAVING count(*) > 1
        """,
    },
    "logs": {
        "has no entries, and a log exists only while it has some": """
            NULL FROM logs WHERE space IN (SELECT space FROM spaces)
            AND NOT EXISTS (SELECT 1 FROM items WHERE log = logs.id)
        """,
    },
    "items": {
        "belongs to namespace {}, but its log to {}": """
            items.space, logs.space FROM items JOIN logs ON logs.id = log WHERE items.space <> logs.space
        """,
    },
    "pools": {
        **_roots("pools", KEYED),
        "closed is {}": "closed FROM pools WHERE closed NOT IN (0, 1)",
        "is dropped, but has the list {}": "list FROM pools WHERE closed = 1 AND list <> 0",
        "is dropped, but has handed out nothing": "NULL FROM pools WHERE closed = 1 AND handed < 1",
        "is one of {} with the same key that are not dropped": f"""
            count(*) FROM pools WHERE closed = 0 GROUP BY {KEYED} HAVING count(*) > 1
        """,
        "its list {} does not exist, or belongs to another pool": """
            list FROM pools WHERE closed = 0
            AND NOT EXISTS (SELECT 1 FROM lists WHERE lists.id = pools.list AND lists.pool = pools.id)
        """,
        "expires at {}, but its list at {}": """
            pools.expires_at, lists.expires_at FROM pools JOIN lists ON lists.id = pools.list
            WHERE closed = 0 AND pools.expires_at <> lists.expires_at
        """,
        "is at item {} of a list of {}": """
            position, size FROM pools JOIN lists ON lists.id = pools.list
            WHERE closed = 0 AND position NOT BETWEEN 0 AND size
        """,
        "counts {} items as handed out, but has rows of {}": """
            handed, found FROM (SELECT *, (SELECT count(*) FROM handed
            WHERE pool = pools.id) AS found FROM pools) AS pools WHERE handed <> found
        """,
    },
    "handed": {
        "the {} items are numbered {} to {}": """
            count(*), min(ordinal), max(ordinal) FROM handed
            WHERE pool IN (SELECT id FROM pools) GROUP BY pool HAVING min(ordinal) <> 1 OR max(ordinal) <> count(*)
        """,
        "the {} items of one user are numbered {} to {}": """
            count(*), min(nth), max(nth) FROM handed WHERE pool IN (SELECT id FROM pools)
            GROUP BY pool, holder HAVING min(nth) <> 1 OR max(nth) <> count(*)
        """,
        "an item has the root {}, but its pool {}": """
            handed.root, pools.root FROM handed JOIN pools ON pools.id = pool WHERE handed.root <> pools.root
        """,
        "an item was handed out {} times": """
            count(*) FROM handed WHERE pool IN (SELECT id FROM pools) GROUP BY root, item HAVING count(*) > 1
        """,
    },
    "spent": {
        "a digest has {} bytes instead of 16": "length(digest) FROM spent WHERE length(digest) <> 16",
    },
    "lists": {
        "is used by pool {}, which has another list or does not exist": """
            pool FROM lists WHERE pool IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pools
            WHERE pools.id = lists.pool AND pools.list = lists.id AND closed = 0)
        """,
        "counts {} items, but its chunks have {}": """
            size, found FROM (SELECT *, coalesce((SELECT sum(items_in(items)) FROM chunks
            WHERE list = lists.id), 0) AS found FROM lists) AS lists WHERE size <> found
        """,
    },
    "chunks": {
        "begins with item {}, but the one in front of it ends with item {}": """
            first, expected - 1 FROM (SELECT *, coalesce(lag(first + items_in(items))
            OVER (PARTITION BY list ORDER BY first), 0) AS expected FROM chunks) AS chunks
            WHERE first <> expected AND list IN (SELECT id FROM lists)
        """,
    },
    "rosters": _roots("rosters", "space, shelf, owner, holder, place"),
    "members": {
        "a member has the root {}, but its roster {}": """
            members.root, rosters.root FROM members JOIN rosters ON rosters.id = roster
            WHERE members.root <> rosters.root
        """,
    },
}
"""By table and finding: the SQL that selects the values of the finding (`NULL` if it has none) from the wrong rows."""
CONTENT_CHECKS: Final = (
    *(
        Check(table, what, f"SELECT {key_of(table)}, {found}")
        for table, checks in _CONTRADICTIONS.items()
        for what, found in checks.items()
    ),
    Check(
        "tallies",
        "has no count for a choice that has {} casts",
        f"SELECT (SELECT {key_of('ballots')} FROM ballots WHERE id = found.ballot), casts FROM ({_CASTS}) AS found"
        " WHERE NOT EXISTS (SELECT 1 FROM tallies WHERE ballot = found.ballot AND choice = found.choice)",
    ),
    Check(
        "spent",
        "lacks an item that was handed out",
        f"SELECT {key_of('handed')} FROM handed WHERE pool IN (SELECT id FROM pools)"
        f" AND NOT EXISTS (SELECT 1 FROM spent WHERE family = ({_FAMILY}) AND digest = digest_of(item))",
    ),
    Check(
        "messages",
        "the newest has number {}, but sqlite_sequence has {}",
        "SELECT '', newest, noted FROM (SELECT (SELECT max(number) FROM messages) AS newest,"
        " (SELECT max(seq) FROM sqlite_sequence WHERE name = 'messages') AS noted)"
        " WHERE newest IS NOT NULL AND newest IS NOT noted",
    ),
    Check(
        "sqlite_sequence",
        "has {} rows for the table {}",
        "SELECT '', count(*), name FROM sqlite_sequence GROUP BY name HAVING count(*) > 1 OR name IS NOT 'messages'",
    ),
    Check(
        "messages",
        "there are {} of the numbers {} to {}",
        "SELECT '', n, first, last FROM (SELECT count(*) AS n, min(number) AS first, max(number) AS last FROM messages)"
        " WHERE n > 0 AND n <> last - first + 1",
    ),
    Check(
        "messages",
        f"there are {{}}, and {MAX_ROWS} are kept",
        f"SELECT '', n FROM (SELECT count(*) AS n FROM messages) WHERE n > {MAX_ROWS}",
    ),
)
