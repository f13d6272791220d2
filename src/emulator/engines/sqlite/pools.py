"""Pools and rosters on SQLite.

One row per handed-out item; `pool_cache.py` has the lists they come from. One row per member of a roster, indexed so
that one lookup finds all rosters of a member.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from emulator.engines.pools import NO_SIZES, Assignment, Count, Drawn, Holding, Limit, Stock, writes_of_assignment
from emulator.engines.shapes import Key
from emulator.engines.sqlite.namespace import Namespace, Tables
from emulator.engines.sqlite.pool_cache import (
    ROOT_OF_POOLS,
    CachedPool,
    ListRow,
    Lists,
    PoolCache,
    SpentItems,
    chunks_of,
)
from emulator.engines.sqlite.table_list import BY_KEY, HANDED, MEMBERS, ROSTERS, key_columns

MAX_SKIPPED = 500
"""Items that all pools together skip in one group commit."""

_LIVE = f"FROM (SELECT * FROM pools WHERE {BY_KEY} AND closed = 0) AS pools CROSS JOIN lists ON lists.id = pools.list"
_STOCK = f"SELECT pools.expires_at, note, {key_columns('lists')} {_LIVE}"
_PROGRESS = f"SELECT pools.expires_at, handed, lists.size - position {_LIVE}"
# CROSS JOIN fixes the order: `handed` first, then whether its pool has expired.
_OF_USER = """
    SELECT handed.item, pools.closed FROM handed CROSS JOIN pools ON pools.id = handed.pool
    WHERE handed.root = ? AND handed.holder = ? AND pools.expires_at > ? ORDER BY handed.pool, handed.nth
"""
_COUNT = "SELECT nth FROM handed WHERE root = ? AND holder = ? AND pool = ? ORDER BY nth DESC LIMIT 1"


class _Pending(Enum):
    MORE = 0
    """More items have to be skipped, after other operations have run."""


class SqlitePools(Tables):
    def __init__(self, namespace: Namespace, lists: Lists, pool_cache: PoolCache, spent: SpentItems) -> None:
        super().__init__(namespace)
        self._lists = lists
        self._pool_cache = pool_cache
        self._spent = spent
        self._skipped = 0
        """Items that were skipped in this group commit."""
        self._skipping: dict[Key, asyncio.Event] = {}
        """Pools in which one draw skips items; the other draws wait for the event."""

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._fill, source, chunks_of(items), now, expires_at)

    async def items(self, source: Key, at: int, *, now: int) -> Sequence[str]:
        return await self._group_commit.read(self._items, source, at, now)

    async def assign(
        self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int, sizes: Mapping[Key, int] = NO_SIZES
    ) -> bool:
        written = await self._group_commit.write(self._assign, keys, change, now, expires_at, sizes)
        for key in written or ():
            if key not in self._skipping:
                await self._skip_spent(key, now)
        return written is not None

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        return await self._group_commit.read(self._stocks, keys, now)

    async def counts(self, keys: Sequence[Key], *, now: int) -> dict[Key, Count]:
        return await self._group_commit.read(self._counts, keys, now)

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        await self._group_commit.write(self._discard, sources)

    async def draw(self, key: Key, user: str, *, limit: Limit, now: int, held: bool = False) -> Drawn:
        while True:
            while key in self._skipping:
                await self._skipping[key].wait()
            result = await self._group_commit.write(self._try_draw, key, user, limit, now, held)
            if result is not _Pending.MORE:
                return result
            if key not in self._skipping:
                await self._skip_spent(key, now)

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        return await self._group_commit.read(self._holdings_of_user, keys, user, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        return await self._group_commit.write(self._drop, keys, now)

    def flush(self) -> None:
        self._skipped = 0

    def forget_read(self) -> None: ...

    def roll_back(self) -> None:
        self._skipped = 0

    def _fill(self, source: Key, chunks: Sequence[tuple[int, bytes]], now: int, expires_at: int) -> None:
        found = self._lists.find(source)
        if found is not None and found.pool is not None and now < found.expires_at:
            raise ValueError(f"a pool uses this list: {source}")
        to = self._live_list(found, now) or self._lists.create(source, expires_at)
        self._lists.append(to, chunks, expires_at)

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
            if size > (found.size if found else 0):
                return None
        for key, (source, note) in written.items():
            pool = self._pool_cache.find(key)
            if pool is not None and pool.expires_at <= now:
                self._pool_cache.expire(key, pool)
                pool = None
            found = self._live_list(self._lists.find(source), now) or self._lists.create(source, expires_at)
            end = max(expires_at, found.expires_at, pool.expires_at if pool else 0)
            if pool is None:
                pool = self._pool_cache.create(key, found.id, note, end)
            else:
                self._pool_cache.assign(pool, found.id, note, end)
            self._lists.assign(found.id, pool.id, end)
        return list(written)

    def _check_sources(self, stocks: Mapping[Key, Stock], now: int) -> None:
        """Raise `ValueError` if another live pool uses one of the lists."""
        for key, (source, _) in stocks.items():
            found, pool = self._lists.find(source), self._pool_cache.find(key)
            if found is None or found.pool is None or found.expires_at <= now:
                continue
            if pool is None or found.pool != pool.id:
                raise ValueError(f"another pool uses this list: {source}")

    def _live_list(self, found: ListRow | None, now: int) -> ListRow | None:
        """Return a live list; remove an expired one, with its pool."""
        if found is None or now < found.expires_at:
            return found
        if found.pool is None:
            self._lists.remove(found.id)
        else:
            self._pool_cache.expire_id(found.pool)
        return None

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
                self._lists.remove(found.id)

    def _try_draw(self, key: Key, user: str, limit: Limit, now: int, held: bool) -> Drawn | _Pending:
        user.encode()  # raises for text that cannot be stored, before anything is written
        pool = self._pool_cache.find_live(key, now)
        item = None if pool is None else self._hand_out(pool, user, limit(pool.note))
        if isinstance(item, _Pending):
            return item
        return Drawn(item, self._holding_of_user(key, user, now).items if held else ())

    def _hand_out(self, pool: CachedPool, user: str, most: int) -> str | _Pending | None:
        connection = self._group_commit.connection
        row = connection.execute(_COUNT, (pool.root, user, pool.id)).fetchone()
        nth = row[0] + 1 if row else 1
        if nth > most:
            return None
        item = self._next_item(pool, self._spent.spend)
        if isinstance(item, str):
            connection.execute(HANDED.insert, (pool.id, pool.handed + 1, pool.root, item, user, nth))
            self._pool_cache.advance(pool, 1, handed=1)
        return item

    def _next_item(self, pool: CachedPool, is_next: Callable[[int, str], bool]) -> str | _Pending | None:
        """Skip to the first item for which `is_next`, which takes the family too, is true, and return it."""
        while (item := self._pool_cache.next_item(pool)) is not None:
            if is_next(pool.family, item):
                return item
            if self._skipped >= MAX_SKIPPED:
                return _Pending.MORE
            count = self._spent.count_spent_at_front(pool.family, self._pool_cache.next_items(pool))
            self._pool_cache.advance(pool, count, handed=0)
            self._skipped += count
            self._group_commit.unwritten[self] = None
        return None

    async def _skip_spent(self, key: Key, now: int) -> None:
        """Skip to the next item that is not spent, or to the end, in as many commits as that takes."""
        self._skipping[key] = skipped = asyncio.Event()
        try:
            while await self._group_commit.write(self._skip_some, key, now):
                pass
        finally:
            del self._skipping[key]
            skipped.set()

    def _skip_some(self, key: Key, now: int) -> bool:
        pool = self._pool_cache.find_live(key, now)
        return pool is not None and self._next_item(pool, self._spent.is_unspent) is _Pending.MORE

    def _holdings_of_user(self, keys: Sequence[Key], user: str, now: int) -> dict[Key, Holding]:
        return {key: holding for key in keys if (holding := self._holding_of_user(key, user, now)).items}

    def _holding_of_user(self, key: Key, user: str, now: int) -> Holding:
        connection = self._group_commit.connection
        root = connection.execute(ROOT_OF_POOLS, self._namespace.params(key)).fetchone()
        rows = connection.execute(_OF_USER, (*root, user, now)).fetchall() if root else []
        return Holding(tuple(item for item, _ in rows), sum(not closed for _, closed in rows))

    def _drop(self, keys: Sequence[Key], now: int) -> dict[Key, int]:
        counts = {}
        found = {key: pool for key in keys if (pool := self._pool_cache.find(key)) is not None}
        for key, pool in found.items():
            if pool.expires_at <= now:
                self._pool_cache.expire(key, pool)
            else:
                self._pool_cache.close(key, pool)
                counts[key] = pool.handed
        return counts


_FIND = f"SELECT id, root, expires_at FROM rosters WHERE {BY_KEY}"
ROOT_OF_ROSTERS = (
    "SELECT root FROM rosters WHERE space = ? AND shelf = ? AND owner = ? AND holder = ? AND place = ? LIMIT 1"
)
_SET_EXPIRY = "UPDATE rosters SET expires_at = ? WHERE id = ?"
ADD_MEMBER = f"{MEMBERS.insert} ON CONFLICT DO NOTHING"
_LISTING = """
    SELECT rosters.name FROM members CROSS JOIN rosters ON rosters.id = members.roster
    WHERE members.root = ? AND members.member = ? AND rosters.expires_at > ?
"""


class SqliteRosters(Tables):
    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> int:
        return await self._group_commit.write(self._add_members, key, members, now, expires_at)

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> dict[str, set[str]]:
        return await self._group_commit.read(self._listing, key, members, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._group_commit.write(self._drop, keys)

    def _add_members(self, key: Key, members: Sequence[str], now: int, expires_at: int) -> int:
        "".join(members).encode()  # raises for text that cannot be stored, before anything is written
        connection = self._group_commit.connection
        row = connection.execute(_FIND, self._namespace.params(key)).fetchone()
        if row is not None and row[2] <= now:
            ROSTERS.remove_and_list(connection, row[0], row[1])
            row = None
        if row is None:
            row = self._create(key, expires_at)
        elif row[2] < expires_at:
            connection.execute(_SET_EXPIRY, (expires_at, row[0]))
        id, root, _ = row
        # In index order: with a million members, any other order takes twice as long.
        return connection.executemany(ADD_MEMBER, [(root, member, id) for member in sorted(members)]).rowcount

    def _create(self, key: Key, expires_at: int) -> tuple[int, int, int]:
        id = self._namespace.next_number()
        root = self._root(key) or id
        self._group_commit.connection.execute(ROSTERS.insert, (id, root, *self._namespace.params(key), expires_at))
        return id, root, expires_at

    def _root(self, key: Key) -> int | None:
        """Return the root of the rosters that share all parts of `key` but the name."""
        namespace, kind, owner, _, user, channel = self._namespace.params(key)
        row = self._group_commit.connection.execute(ROOT_OF_ROSTERS, (namespace, kind, owner, user, channel)).fetchone()
        return None if row is None else int(row[0])

    def _listing(self, key: Key, members: Sequence[str], now: int) -> dict[str, set[str]]:
        root, execute = self._root(key), self._group_commit.connection.execute
        if root is None:
            return {}
        found = {member: {name for (name,) in execute(_LISTING, (root, member, now))} for member in members}
        return {member: names for member, names in found.items() if names}

    def _drop(self, keys: Sequence[Key]) -> None:
        found = [self._group_commit.connection.execute(_FIND, self._namespace.params(key)).fetchone() for key in keys]
        for id, root, _ in {row for row in found if row is not None}:
            ROSTERS.remove_and_list(self._group_commit.connection, id, root)
