"""The catalog on SQLite: from the indexes by key and by expiry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from emulator.core.keys import NEVER, Expired, Key
from emulator.storage.shapes import Thing
from emulator.storage.sqlite.ballot_cache import BallotCache
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.table_list import KEY_COLUMNS, MATCHING

_MAX_COMING: Final = 20_000
"""Rows of a table that a search for expiries looks at."""
# The plus sign keeps SQLite from using the index by expiry.
_ALIVE: Final = "+expires_at > :now"
_CONDITIONS: Final = {
    "documents": _ALIVE,
    "ballots": _ALIVE,
    "logs": f"EXISTS (SELECT 1 FROM items WHERE log = logs.id AND {_ALIVE})",
    "pools": f"{_ALIVE} AND closed = 0",
}
"""By table: whether a row is a live thing."""
_COUNTS: Final = [
    f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE space = :space AND shelf = :kind AND {condition} LIMIT :most)"
    for table, condition in _CONDITIONS.items()
]
_NEXT_OWNER: Final = [
    f"SELECT owner FROM {table} WHERE space = :space AND shelf = :kind AND owner > :after AND {_CONDITIONS[table]}"
    " ORDER BY owner LIMIT 1"
    for table in ("ballots", "logs")
]
_THINGS: Final = [
    f"SELECT {KEY_COLUMNS}, expires_at, {size} FROM {table} WHERE space = :space AND shelf = :kind"
    f" AND {_CONDITIONS[table]} %s ORDER BY owner, name, place, holder LIMIT :limit"
    for table, size in (("documents", "length(value)"), ("pools", "0"))
]
_SOONEST: Final = f"""
    WHERE space = :space AND expires_at > :now AND expires_at < {NEVER} ORDER BY expires_at LIMIT {_MAX_COMING}
"""
_OF_KINDS: Final = "shelf IN (SELECT value FROM json_each(:kinds))"
# Without another order, SQLite takes the rows of the inner query one by one, up to the limit.
_UPCOMING: Final = [
    *(
        f"SELECT expires_at, {KEY_COLUMNS} FROM (SELECT * FROM {rows} {_SOONEST}) WHERE {_OF_KINDS} LIMIT :limit"
        for rows in ("documents", "ballots", "(SELECT * FROM pools WHERE closed = 0)")
    ),
    f"SELECT min(expires_at), {KEY_COLUMNS} FROM (SELECT log, expires_at FROM items {_SOONEST})"
    f" CROSS JOIN logs ON logs.id = log WHERE {_OF_KINDS} GROUP BY log",
]


class SqliteCatalog(Tables):
    def __init__(self, namespace: Namespace, ballot_cache: BallotCache) -> None:
        super().__init__(namespace)
        self._ballot_cache = ballot_cache

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
                params = {"now": now, "kind": kind, "limit": limit - len(found), "owner": owner, "channel": channel}
                found += await self._group_commit.read(self._select_page, params, matching, start)
        return found

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        params = {"space": self._namespace.id, "kinds": json.dumps(kinds), "now": now, "limit": limit}
        found: list[Expired] = []
        for statement in _UPCOMING:
            found += await self._group_commit.read(self._expiries, statement, params)
            await asyncio.sleep(0)
        return sorted(found, key=lambda one: (one.at, one.key))[:limit]

    def _count(self, kind: str, now: int, most: int) -> int:
        self._ballot_cache.flush()
        params = {"space": self._namespace.id, "kind": kind, "now": now, "most": most}
        found = (self._group_commit.connection.execute(each, params).fetchone()[0] for each in _COUNTS)
        return min(most, sum(map(int, found)))

    def _owners(self, kind: str, now: int, limit: int, after: str) -> list[str]:
        self._ballot_cache.flush()
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

    def _select_page(self, params: dict[str, Any], matching: str, after: Key | None) -> list[Thing]:
        conditions = ["", *(f"{column} = :{name}" for column, name in _FILTERS.items() if params[name] is not None)]
        params = params | {"space": self._namespace.id}
        if after is not None:
            conditions.append("(owner, name, place, holder) > (:owner_, :name_, :place_, :holder_)")
            params |= {"owner_": after.owner, "name_": after.name, "place_": after.channel, "holder_": after.user}
        if matching:
            conditions.append(MATCHING % ":matching")
            params["matching"] = matching
        rows: list[Any] = []
        for statement in _THINGS:
            rows += self._group_commit.connection.execute(statement % " AND ".join(conditions), params).fetchall()
        found = [Thing(Key(*key), expires_at, size) for *key, expires_at, size in rows]
        return sorted(found, key=lambda thing: thing.key)[: params["limit"]]

    def _expiries(self, statement: str, params: dict[str, Any]) -> list[Expired]:
        self._ballot_cache.flush()
        rows = self._group_commit.connection.execute(statement, params).fetchall()
        return [Expired(Key(*key), expires_at) for expires_at, *key in rows]


_FILTERS: Final = {"owner": "owner", "place": "channel"}
"""The parameter of each column that may be given."""
