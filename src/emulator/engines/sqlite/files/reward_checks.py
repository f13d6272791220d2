"""Checks of pools, their lists and the items they have handed out, and of rosters."""

from __future__ import annotations

from typing import Final

from emulator.engines.sqlite.files.checks import Check, key_of

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
