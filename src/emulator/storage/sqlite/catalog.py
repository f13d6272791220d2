"""Lists things by key, counts them, and finds those that expire next."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from emulator.core.keys import NEVER, Expired, Key
from emulator.storage.shapes import Thing
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import BALLOTS, DOCUMENTS, KEY, LOGS, POOLS, Table

_MAX_COMING: Final = 20_000
"""Rows of a table that a search for expiries looks at."""
# The plus sign keeps SQLite from using the index by expiry.
ALIVE: Final = "+expires_at > :now"
_CONDITIONS: Final[Mapping[Table, str]] = {
    DOCUMENTS: ALIVE,
    BALLOTS: ALIVE,
    LOGS: f"EXISTS (SELECT 1 FROM items WHERE log = logs.id AND {ALIVE})",
    POOLS: f"{ALIVE} AND list IS NOT NULL",
}
"""By table: whether a row is a live thing."""
_COUNTS: Final = [
    f"SELECT count(*) FROM (SELECT 1 FROM {table.name} WHERE space = :space AND kind = :kind AND {alive} LIMIT :most)"
    for table, alive in _CONDITIONS.items()
]
_NEXT_OWNER: Final = [
    f"SELECT owner FROM {table.name} WHERE space = :space AND kind = :kind AND owner > :after AND {_CONDITIONS[table]}"
    " ORDER BY owner LIMIT 1"
    for table in (BALLOTS, LOGS)
]
_SOONEST: Final = f"""
    WHERE space = :space AND expires_at > :now AND expires_at < {NEVER} ORDER BY expires_at LIMIT {_MAX_COMING}
"""
_OF_KINDS: Final = "kind IN (SELECT value FROM json_each(:kinds))"
# Without another order, SQLite takes the rows of the inner query one by one, up to the limit.
_UPCOMING: Final = [
    *(
        f"SELECT {KEY}, expires_at FROM (SELECT * FROM {rows} {_SOONEST}) WHERE {_OF_KINDS} LIMIT :limit"
        for rows in ("documents", "ballots", "(SELECT * FROM pools WHERE list IS NOT NULL)")
    ),
    f"SELECT {KEY}, min(expires_at) FROM (SELECT log, expires_at FROM items {_SOONEST})"
    f" CROSS JOIN logs ON logs.id = log WHERE {_OF_KINDS} GROUP BY log",
]
BY_CHANNEL: Final = "channel, name, user"
_BY_OWNER: Final = "owner, name, channel, user"


def page_of(
    table: Table, columns: str, equal: Mapping[str, object], order: str, after: Key | None, matching: str
) -> tuple[str, dict[str, object]]:
    """Return the statement that selects a page of live things in an order, and its parameters but `now` and `limit`.

    `equal` has the values of columns, `None` for any. `matching` is a text in the name, channel or user.
    """
    params = {column: value for column, value in equal.items() if value is not None}
    conditions = [_CONDITIONS[table], *(f"{column} = :{column}" for column in params)]
    if after:
        start = [column for column in order.split(", ") if column not in params]
        conditions.append(f"({', '.join(start)}) > ({', '.join(f':after_{column}' for column in start)})")
        params |= {f"after_{column}": getattr(after, column) for column in start}
    if matching:
        conditions.append("instr(name || char(10) || channel || char(10) || user, :matching)")
        params["matching"] = matching
    statement = f"SELECT {columns} FROM {table.name} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :limit"
    return statement, params


class SqliteCatalog(Tables):
    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        return {kind: await self._group_commit.read(self._count, kind, now, most) for kind in kinds}

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        return await self._group_commit.read(self._owners, kind, now, limit, after)

    async def things(
        self,
        kinds: Sequence[str],
        *,
        now: int,
        limit: int,
        owner: str | None = None,
        channel: str | None = None,
        matching: str = "",
        after: Key | None = None,
    ) -> list[Thing]:
        found: list[Thing] = []
        for kind in sorted(kinds):
            if len(found) < limit and (after is None or after.kind <= kind):
                start = after if after is not None and after.kind == kind else None
                equal = {"space": self._namespace.id, "kind": kind, "owner": owner, "channel": channel}
                page = {"equal": equal, "after": start, "matching": matching}
                found += await self._group_commit.read(self._things, now, limit - len(found), page)
        return found

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        params = {"space": self._namespace.id, "kinds": json.dumps(kinds), "now": now, "limit": limit}
        found: list[Expired] = []
        for statement in _UPCOMING:
            found += await self._group_commit.read(self._expiries, statement, params)
            await asyncio.sleep(0)
        return sorted(found, key=lambda one: (one.at, one.key))[:limit]

    def _count(self, kind: str, now: int, most: int) -> int:
        self._group_commit.flush()
        params = {"space": self._namespace.id, "kind": kind, "now": now, "most": most}
        found = (self._group_commit.connection.execute(each, params).fetchone()[0] for each in _COUNTS)
        return min(most, sum(map(int, found)))

    def _owners(self, kind: str, now: int, limit: int, after: str) -> list[str]:
        self._group_commit.flush()
        found: set[str] = set()
        for statement in _NEXT_OWNER:
            params = {"space": self._namespace.id, "kind": kind, "now": now, "after": after}
            for _ in range(limit):  # one lookup for each: an owner may have thousands of ballots
                row = self._group_commit.connection.execute(statement, params).fetchone()
                if row is None:
                    break
                (params["after"],) = row
                found.add(row[0])
        return sorted(found)[:limit]

    def _things(self, now: int, limit: int, page: dict[str, Any]) -> list[Thing]:
        found: list[Thing] = []
        for table, size in ((DOCUMENTS, "length(value)"), (POOLS, "0")):
            statement, params = page_of(table, f"{KEY}, expires_at, {size}", order=_BY_OWNER, **page)
            rows = self._group_commit.connection.execute(statement, params | {"now": now, "limit": limit})
            found += [Thing(Key(*key), expires_at, size) for *key, expires_at, size in rows]
        return sorted(found, key=lambda thing: thing.key)[:limit]

    def _expiries(self, statement: str, params: dict[str, Any]) -> list[Expired]:
        self._group_commit.flush()
        rows = self._group_commit.connection.execute(statement, params).fetchall()
        return [Expired(Key(*key), expires_at) for *key, expires_at in rows]
