"""Pools on SQLite: one row per pool, from its first assignment to its drop or expiry, and one per handed-out item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from emulator.core.keys import Key
from emulator.storage.pools import (
    MAX_SKIPPED,
    NO_SIZES,
    Assignment,
    Count,
    Drawn,
    Holding,
    Limit,
    Stock,
    writes_of_assignment,
)
from emulator.storage.sqlite.lists import ListRow, Lists, SpentItems, chunks_of
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.tables import BY_KEY, LISTS, POOLS, key_of

_NOT_DROPPED = f"FROM pools WHERE {BY_KEY} AND list IS NOT NULL"
_FIND = f"SELECT id, expires_at, list, note, family, position {_NOT_DROPPED}"
_STOCK = f"""
    SELECT found.expires_at, note, {key_of("lists")}
    FROM (SELECT * {_NOT_DROPPED}) AS found CROSS JOIN lists ON lists.id = list
"""
_HANDED = "(SELECT coalesce(max(ordinal), 0) FROM handed WHERE pool = pools.id)"
_PROGRESS = f"""
    SELECT expires_at, {_HANDED}, (SELECT coalesce(max(end), 0) FROM chunks WHERE list = pools.list) - position
    {_NOT_DROPPED}
"""
_ASSIGN = "UPDATE pools SET list = ?, position = ?, note = ?, expires_at = ? WHERE id = ?"
_MOVE = "UPDATE pools SET position = ? WHERE id = ?"
_STEP = "UPDATE pools SET position = position + 1 WHERE id = ?"
_CLOSE = "UPDATE pools SET list = NULL, note = x'' WHERE id = ?"
_COUNT = "SELECT count(*) FROM handed WHERE pool = ? AND user = ?"
HAND_OUT = "INSERT INTO handed SELECT ?1, coalesce(max(ordinal), 0) + 1, ?2, ?3 FROM handed WHERE pool = ?1"
_OF_USER = f"""
    SELECT item, list FROM (SELECT id, list FROM pools WHERE {BY_KEY} AND expires_at > ?)
    CROSS JOIN handed ON pool = id AND user = ? ORDER BY id, ordinal
"""


class _Pool(NamedTuple):
    id: int
    expires_at: int
    list_id: int
    note: bytes
    family: int
    position: int
    """The position of the next item in the list."""


class SqlitePools(Tables):
    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._lists = Lists(namespace)
        self._spent = SpentItems(namespace)

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._fill, source, chunks_of(items), now, expires_at)

    async def items(self, source: Key, at: int, *, now: int) -> Sequence[str]:
        return await self._group_commit.read(self._items, source, at, now)

    async def assign(
        self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int, sizes: Mapping[Key, int] = NO_SIZES
    ) -> bool:
        written = await self._group_commit.write(self._assign, keys, change, now, expires_at, sizes)
        for key in written or ():
            while await self._group_commit.write(self._skip_some, key, now):
                pass
        return written is not None

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        return await self._group_commit.read(self._stocks, keys, now)

    async def counts(self, keys: Sequence[Key], *, now: int) -> dict[Key, Count]:
        return await self._group_commit.read(self._counts, keys, now)

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        await self._group_commit.write(self._discard, sources)

    async def draw(self, key: Key, user: str, *, limit: Limit, now: int, held: bool = False) -> Drawn:
        drawn = None
        while drawn is None:
            drawn = await self._group_commit.write(self._draw, key, user, limit, now, held)
        return drawn

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        return await self._group_commit.read(self._holdings_of_user, keys, user, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        return await self._group_commit.write(self._drop, keys, now)

    def _fill(self, source: Key, chunks: Sequence[tuple[int, bytes]], now: int, expires_at: int) -> None:
        found = self._lists.find(source)
        if found is not None and found.pool is not None and now < found.expires_at:
            raise ValueError(f"a pool uses this list: {source}")
        to = self._live_list(found, now) or self._lists.create(source, expires_at)
        self._lists.append(to.id, chunks)
        self._lists.set_expiry(to.id, max(expires_at, to.expires_at))

    def _items(self, source: Key, at: int, now: int) -> Sequence[str]:
        found = self._lists.find(source)
        return [] if found is None or now >= found.expires_at else self._lists.items(found.id, at)

    def _assign(
        self, keys: Sequence[Key], change: Assignment, now: int, expires_at: int, sizes: Mapping[Key, int]
    ) -> list[Key] | None:
        """Return the pools written; `None`, and write nothing, if a list has fewer items than `sizes` has for it."""
        written = writes_of_assignment(change, self._stocks(keys, now), keys)
        self._check_sources(written, now)
        for source, size in sizes.items():
            found = self._live_list(self._lists.find(source), now)
            if size > (self._lists.size(found.id) if found else 0):
                return None
        for key, (source, note) in written.items():
            pool = self._find(key)
            if pool is not None and pool.expires_at <= now:
                self._remove(pool)
                pool = None
            found = self._live_list(self._lists.find(source), now) or self._lists.create(source, expires_at)
            end = max(expires_at, found.expires_at, pool.expires_at if pool else 0)
            self._assign_list(key, pool, found.id, note, end)
            self._lists.set_expiry(found.id, end)
        return list(written)

    def _assign_list(self, key: Key, pool: _Pool | None, list_id: int, note: bytes, expires_at: int) -> None:
        """Assign a list to a pool, which is created if there is none. It keeps its position in the same list."""
        execute = self._group_commit.connection.execute
        if pool is None:
            id, family = self._namespace.next_number(), self._spent.family(self._namespace.id, key)
            execute(POOLS.insert, (id, *self._namespace.params(key), expires_at, list_id, note, family))
            return
        position = pool.position
        if list_id != pool.list_id:
            LISTS.remove(self._group_commit.connection, pool.list_id)
            position = 0
        execute(_ASSIGN, (list_id, position, note, expires_at, pool.id))

    def _check_sources(self, stocks: Mapping[Key, Stock], now: int) -> None:
        """Raise `ValueError` if another live pool uses one of the lists."""
        for key, (source, _) in stocks.items():
            found, pool = self._lists.find(source), self._find(key)
            if found is None or found.pool is None or found.expires_at <= now:
                continue
            if pool is None or found.pool != pool.id:
                raise ValueError(f"another pool uses this list: {source}")

    def _live_list(self, found: ListRow | None, now: int) -> ListRow | None:
        """Return a live list; remove an expired one, with its pool."""
        if found is None or now < found.expires_at:
            return found
        LISTS.remove(self._group_commit.connection, found.id)
        if found.pool is not None:
            POOLS.remove(self._group_commit.connection, found.pool)
        return None

    def _find(self, key: Key) -> _Pool | None:
        """Return the pool, alive or expired, unless it was dropped."""
        row = self._group_commit.connection.execute(_FIND, self._namespace.params(key)).fetchone()
        return None if row is None else _Pool(*row)

    def _find_live(self, key: Key, now: int) -> _Pool | None:
        pool = self._find(key)
        return pool if pool is not None and now < pool.expires_at else None

    def _remove(self, pool: _Pool) -> None:
        POOLS.remove(self._group_commit.connection, pool.id)
        LISTS.remove(self._group_commit.connection, pool.list_id)

    def _stocks(self, keys: Sequence[Key], now: int) -> dict[Key, Stock]:
        return {key: Stock(Key(*source), note) for key, (note, *source) in self._live_pools(_STOCK, keys, now)}

    def _counts(self, keys: Sequence[Key], now: int) -> dict[Key, Count]:
        return {key: Count(*counts) for key, counts in self._live_pools(_PROGRESS, keys, now)}

    def _live_pools(self, statement: str, keys: Sequence[Key], now: int) -> Iterator[tuple[Key, tuple[Any, ...]]]:
        """Yield the keys of live pools, each with the columns that `statement` selects after the expiry."""
        for key in keys:
            row = self._group_commit.connection.execute(statement, self._namespace.params(key)).fetchone()
            if row is not None and now < row[0]:
                yield key, row[1:]

    def _discard(self, sources: Sequence[Key]) -> None:
        for found in [self._lists.find(source) for source in dict.fromkeys(sources)]:
            if found is not None and found.pool is None:
                LISTS.remove(self._group_commit.connection, found.id)

    def _draw(self, key: Key, user: str, limit: Limit, now: int, held: bool) -> Drawn | None:
        """Return `None` if more items have to be skipped first, after other operations have run."""
        user.encode()  # raises for text that cannot be stored, before anything is written
        execute, item = self._group_commit.connection.execute, None
        pool = self._find_live(key, now)
        if pool is not None and execute(_COUNT, (pool.id, user)).fetchone()[0] < limit(pool.note):
            item, has_more = self._next_item(pool)
            if has_more:
                return None
            if item is not None:
                self._spent.spend(pool.family, item)
                execute(HAND_OUT, (pool.id, user, item))
                execute(_STEP, (pool.id,))
        return Drawn(item, self._holding_of_user(key, user, now).items if held else ())

    def _next_item(self, pool: _Pool) -> tuple[str | None, bool]:
        """Move a pool past spent items; return the next item or `None`, and whether there may be more to skip."""
        position, end, item = pool.position, pool.position + MAX_SKIPPED, None
        while item is None and position < end and (items := self._lists.items(pool.list_id, position, chunks=1)):
            if self._spent.is_spent(pool.family, items[0]):
                position += self._spent.count_at_front(pool.family, items)
            else:
                item = items[0]
        if position > pool.position:
            self._group_commit.connection.execute(_MOVE, (position, pool.id))
        return item, position >= end

    def _skip_some(self, key: Key, now: int) -> bool:
        """Skip some spent items; return whether the next one may be spent too."""
        pool = self._find_live(key, now)
        return pool is not None and self._next_item(pool)[1]

    def _holdings_of_user(self, keys: Sequence[Key], user: str, now: int) -> dict[Key, Holding]:
        return {key: holding for key in keys if (holding := self._holding_of_user(key, user, now)).items}

    def _holding_of_user(self, key: Key, user: str, now: int) -> Holding:
        params = (*self._namespace.params(key), now, user)
        rows = self._group_commit.connection.execute(_OF_USER, params).fetchall()
        return Holding(tuple(item for item, _ in rows), sum(list_id is not None for _, list_id in rows))

    def _drop(self, keys: Sequence[Key], now: int) -> dict[Key, int]:
        counts = {key: handed for key, (handed, _) in self._live_pools(_PROGRESS, keys, now)}
        for pool, handed in [(self._find(key), counts.get(key)) for key in dict.fromkeys(keys)]:
            if pool is not None and handed:
                self._group_commit.connection.execute(_CLOSE, (pool.id,))
                LISTS.remove(self._group_commit.connection, pool.list_id)
            elif pool is not None:
                self._remove(pool)
        return counts
