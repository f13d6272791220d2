"""The catalog on SQLite: from the indexes by key and by expiry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

from emulator.engines.shapes import NEVER, Expired, Key, Thing
from emulator.engines.sqlite.ballot_cache import BallotCache
from emulator.engines.sqlite.merge import PAGE
from emulator.engines.sqlite.namespace import Namespace, Tables
from emulator.engines.sqlite.table_list import KEY_COLUMNS, MATCHING

_ENTRIES: Final = 2_000
"""Entries of logs that are looked at between two returns to the event loop."""
_MAX_ENTRIES: Final = 10 * _ENTRIES
"""Entries that an iteration over expiries looks at."""
# The plus sign keeps SQLite from using the index by expiry.
_ALIVE: Final = f"+expires_at > :now AND +expires_at < {NEVER}"
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
_COMING: Final = f"space = ? AND expires_at < {NEVER} AND (expires_at, %s) > (?, ?)"
_COMING_THINGS: Final = [
    f"SELECT expires_at, id, {KEY_COLUMNS} FROM {table} WHERE {more} {_COMING % 'id'}"
    f" ORDER BY expires_at, id LIMIT {PAGE}"
    for table, more in (("documents", ""), ("ballots", ""), ("pools", "closed = 0 AND"))
]
_LAST_ENTRY: Final = f"""
    SELECT expires_at, number FROM items WHERE {_COMING % "number"}
    ORDER BY expires_at, number LIMIT 1 OFFSET {_ENTRIES - 1}
"""
_COMING_ENTRIES: Final = f"""
    SELECT first, {KEY_COLUMNS} FROM (
        SELECT log, min(expires_at) AS first FROM items INDEXED BY items_by_end
        WHERE space = ? AND expires_at <= ? AND (expires_at, number) > (?, ?) AND (expires_at, number) <= (?, ?)
        GROUP BY log
    ) CROSS JOIN logs ON logs.id = log
"""
_Position = tuple[int, int]
"""An expiry, and a number that is unique in its table."""
_Coming = tuple[list[Expired], _Position | None]
"""The next expiries of one table, and the position after them; `None` if these are all."""


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

    async def upcoming(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        logs: set[Key] = set()
        reads = [partial(self._coming_things, each) for each in _COMING_THINGS]
        reads.append(partial(self._coming_entries, logs))
        found = [await self._group_commit.read(each, (now, NEVER)) for each in reads]
        looked = 0
        while any(ends or position for ends, position in found):
            # Unread entries expire no sooner than this.
            until = min((position[0] for _, position in found if position), default=NEVER)
            page: list[Expired] = []
            for at, (ends, position) in enumerate(found):
                page += [each for each in ends if each.at <= until]
                found[at] = [each for each in ends if each.at > until], position
                if position and position[0] == until:
                    found[at] = await self._group_commit.read(reads[at], position)
                    looked += _ENTRIES * (at == len(reads) - 1)
            yield sorted(page, key=lambda one: (one.at, one.key))
            if looked >= _MAX_ENTRIES:
                return
            await asyncio.sleep(0)

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

    def _coming_things(self, statement: str, start: _Position) -> _Coming:
        self._ballot_cache.flush()
        rows = self._group_commit.connection.execute(statement, (self._namespace.id, *start)).fetchall()
        ends = [Expired(Key(*key), expires_at) for expires_at, _, *key in rows]
        return ends, rows[-1][:2] if len(rows) == PAGE else None

    def _coming_entries(self, logs: set[Key], start: _Position) -> _Coming:
        """Return the next expiry of each log on the page from `start` that `logs` does not have yet, and add it to
        `logs`.
        """
        connection, space = self._group_commit.connection, self._namespace.id
        last = connection.execute(_LAST_ENTRY, (space, *start)).fetchone()
        end = last or (NEVER - 1, NEVER)
        rows = connection.execute(_COMING_ENTRIES, (space, end[0], *start, *end)).fetchall()
        ends = [Expired(Key(*key), expires_at) for expires_at, *key in rows if Key(*key) not in logs]
        logs.update(each.key for each in ends)
        return ends, last


_FILTERS: Final = {"owner": "owner", "place": "channel"}
"""The parameter of each column that may be given."""
