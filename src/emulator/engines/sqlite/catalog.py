"""The catalog on SQLite: from the indexes by key and by expiry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from emulator.engines.base import NEVER, Expired, Key
from emulator.engines.catalog import Thing
from emulator.engines.sqlite.ballot_cache import BallotCache
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.merge import PAGE
from emulator.engines.sqlite.namespace_ids import KEY_COLUMNS, MATCHING, NamespaceIds, Tables

_MAX_ITEMS: Final = 20_000
"""Entries of logs that an iteration over expiries looks at."""
# The plus sign keeps SQLite from using the index by expiry.
_ALIVE: Final = f"+expires_at > :now AND +expires_at < {NEVER}"
_HAS_ENTRIES: Final = (
    f"EXISTS (SELECT 1 FROM items WHERE log = logs.id AND +expires_at > :now AND +expires_at < {NEVER})"
)
_CONDITIONS: Final = {
    "documents": _ALIVE,
    "ballots": _ALIVE,
    "logs": _HAS_ENTRIES,
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
_ORDER: Final = f"space = ? AND expires_at < {NEVER} AND (expires_at, %s) > (?, ?) ORDER BY expires_at, %s LIMIT {PAGE}"
_UPCOMING: Final = [
    f"SELECT expires_at, id, {KEY_COLUMNS} FROM {table} WHERE {more} {_ORDER % ('id', 'id')}"
    for table, more in (("documents", ""), ("ballots", ""), ("pools", "closed = 0 AND"))
]
_UPCOMING_ITEMS: Final = f"""
    SELECT expires_at, number, {KEY_COLUMNS} FROM (
        SELECT expires_at, number, log FROM items WHERE {_ORDER % ("number", "number")}
    ) AS items CROSS JOIN logs ON logs.id = items.log ORDER BY expires_at, number
"""


class SqliteCatalog(Tables):
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, ballot_cache: BallotCache) -> None:
        super().__init__(group_commit, namespace)
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
                found += await self._group_commit.read(self._things, params, matching, start)
        return found

    async def upcoming(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        statements = [*_UPCOMING, _UPCOMING_ITEMS]
        pages = [await self._group_commit.read(self._upcoming, each, now, NEVER) for each in statements]
        logs: set[Key] = set()
        looked = 0
        while any(pages):
            # Up to here, no later page has anything sooner.
            until = min(rows[-1][0] for rows in pages if rows)
            page: list[Expired] = []
            for at, statement in enumerate(statements):
                due = [row for row in pages[at] if row[0] <= until]
                pages[at] = pages[at][len(due) :]
                for expires_at, _, *columns in due:
                    key = Key(*columns)
                    if statement is _UPCOMING_ITEMS:
                        looked += 1
                        if key in logs:
                            continue
                        logs.add(key)
                    page.append(Expired(key, expires_at))
                if due and not pages[at]:
                    pages[at] = await self._group_commit.read(self._upcoming, statement, *due[-1][:2])
            yield sorted(page, key=lambda one: (one.at, one.key))
            await asyncio.sleep(0)
            if looked >= _MAX_ITEMS:
                return

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

    def _things(self, params: dict[str, Any], matching: str, after: Key | None) -> list[Thing]:
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

    def _upcoming(self, statement: str, at: int, number: int) -> list[Any]:
        self._ballot_cache.flush()
        return self._group_commit.connection.execute(statement, (self._namespace.id, at, number)).fetchall()


_FILTERS: Final = {"owner": "owner", "place": "channel"}
"""The parameter of each column that may be given."""
