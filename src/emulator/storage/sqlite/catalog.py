"""Lists, counts and finds things by key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from emulator.core.keys import NEVER, Expired, Key
from emulator.storage.merging import Row
from emulator.storage.shapes import CatalogSearch, DocumentOrPool, ListedBallot, ListedLog
from emulator.storage.sqlite.namespace import Tables, read_operation
from emulator.storage.sqlite.tables import BALLOTS, DOCUMENTS, KEY, LISTED_TABLES, LOGS, POOLS, Table

# The plus sign keeps SQLite from using the index by expiry.
_ALIVE = "+expires_at > :now"
IS_LIVE: Mapping[Table, str] = {
    **{table: f"{_ALIVE} AND {table.is_listed}" for table in LISTED_TABLES},
    LOGS: f"EXISTS (SELECT 1 FROM items WHERE log = logs.id AND {_ALIVE})",
}
"""By table: whether a row is a live thing."""
_MATCHES_TEXT = "instr(name || char(10) || channel || char(10) || user, :matching)"
_BY_CHANNEL = "channel, name, user"


class Listings(Tables):
    """Base of what lists things by key."""

    async def _list_page(
        self, table: Table, columns: str, equal: Mapping[str, object], order: str, after: Key | None, **params: object
    ) -> list[Row]:
        """Return these columns of live things, in an order and after `after`.

        `equal` has the values of columns, `None` for any. The other parameters are `now`, `limit`, and `matching`: a
        text in the name, channel or user.
        """
        equal = {column: value for column, value in equal.items() if value is not None}
        conditions = ["space = :space", IS_LIVE[table], *(f"{column} = :{column}" for column in equal), _MATCHES_TEXT]
        if after:
            start = [column for column in order.split(", ") if column not in equal]
            conditions.append(f"({', '.join(start)}) > ({', '.join(f':after_{column}' for column in start)})")
            params |= {f"after_{column}": getattr(after, column) for column in start}
        statement = f"SELECT {columns} FROM {table.name} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :limit"
        return await self._select_rows(statement, **equal, **params)


class GroupListings(Listings):
    """Base of what lists ballots or logs."""

    _table: Table
    _description: str
    """A statement about one thing, `:id`, which runs in a step of its own."""
    _listed: type[ListedBallot | ListedLog]
    """Takes the key of a thing, and the columns of its description."""

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[Any]:
        equal = {"kind": group.kind, "owner": group.owner, "channel": group.channel}
        found: list[Any] = []
        page = partial(self._list_page, self._table, f"id, {KEY}", equal, _BY_CHANNEL, now=now, matching=matching)
        while len(found) < limit and (rows := await page(after, limit=limit - len(found))):
            for id, *key in rows:  # one that is deleted meanwhile is not described, and another is read for it
                for row in await self._select_rows(self._description, id=id, now=now):
                    found.append(self._listed(Key(*key), *row))
                await asyncio.sleep(0)
            after = Key(*key)
        return found


_MAX_SEARCHED = 20_000
"""Rows of a table that a search for expiries looks at."""
_COUNT_LIVE = " UNION ALL ".join(
    f"SELECT count(*) FROM (SELECT 1 FROM {table.name} WHERE space = :space AND kind = :kind AND {alive} LIMIT :most)"
    for table, alive in IS_LIVE.items()
)
_NEXT_OWNER = [
    f"SELECT owner FROM {table.name} WHERE space = :space AND kind = :kind AND owner > :after AND {IS_LIVE[table]}"
    " ORDER BY owner LIMIT 1"
    for table in (BALLOTS, LOGS)
]
_SOONEST_ROWS = f"""
    space = :space AND expires_at > :now AND expires_at < {NEVER} ORDER BY expires_at LIMIT {_MAX_SEARCHED}
"""
_OF_KINDS = "kind IN (SELECT value FROM json_each(:kinds))"
# Without another order, SQLite takes the rows of the inner query one by one, up to the limit.
_SELECT_UPCOMING = [
    *(
        f"SELECT {KEY}, expires_at FROM (SELECT * FROM {table.name} WHERE {table.is_listed} AND {_SOONEST_ROWS})"
        f" WHERE {_OF_KINDS} LIMIT :limit"
        for table in LISTED_TABLES
    ),
    f"SELECT {KEY}, min(expires_at) FROM (SELECT log, expires_at FROM items WHERE {_SOONEST_ROWS})"
    f" CROSS JOIN logs ON logs.id = log WHERE {_OF_KINDS} GROUP BY log",
]
_BY_OWNER = "owner, name, channel, user"
_SIZE_COLUMNS = {DOCUMENTS: "length(value)", POOLS: "0"}
"""The tables of `DocumentOrPool`, with its size."""


class SqliteCatalog(Listings):
    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        counts = {}
        for kind in kinds:
            rows = await self._select_rows(_COUNT_LIVE, kind=kind, now=now, most=most)
            counts[kind] = min(most, sum(count for (count,) in rows))
        return counts

    @read_operation
    def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        self.group_commit.flush()
        found: set[str] = set()
        for statement in _NEXT_OWNER:
            params = {"space": self._namespace.id, "kind": kind, "now": now, "after": after}
            for _ in range(limit):  # one lookup for each: an owner may have thousands of ballots
                row = self.group_commit.connection.execute(statement, params).fetchone()
                if row is None:
                    break
                (params["after"],) = row
                found.add(row[0])
        return sorted(found)[:limit]

    async def things(self, search: CatalogSearch, *, now: int, limit: int) -> list[DocumentOrPool]:
        kinds, owner, channel, matching, after = search
        found: list[DocumentOrPool] = []
        for kind in sorted(kinds):
            if len(found) < limit and (after is None or after.kind <= kind):
                start = after if after is not None and after.kind == kind else None
                equal = {"kind": kind, "owner": owner, "channel": channel}
                some: list[DocumentOrPool] = []
                for table, size in _SIZE_COLUMNS.items():
                    columns = f"{KEY}, expires_at, {size}"
                    rows = await self._list_page(
                        table, columns, equal, _BY_OWNER, start, now=now, limit=limit, matching=matching
                    )
                    some += [DocumentOrPool(Key(*key), expires_at, size) for *key, expires_at, size in rows]
                found += sorted(some)
        return found[:limit]

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        found: list[Expired] = []
        for statement in _SELECT_UPCOMING:
            rows = await self._select_rows(statement, kinds=json.dumps(kinds), now=now, limit=limit)
            found += [Expired(Key(*key), expires_at) for *key, expires_at in rows]
            await asyncio.sleep(0)
        return sorted(found, key=lambda one: (one.at, one.key))[:limit]
