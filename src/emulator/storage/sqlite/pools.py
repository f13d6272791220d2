"""Pools and rosters on SQLite.

One row per handed-out item; `pool_cache.py` has the lists they come from. One row per member of a roster, with an index
that finds all rosters of a member.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from emulator.core.keys import Key
from emulator.storage.pools import (
    NO_SIZES,
    Assignment,
    Count,
    Drawn,
    Holding,
    Limit,
    Listed,
    Stock,
    writes_of_assignment,
)
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.pool_cache import (
    ROOT_OF_POOLS,
    CachedPool,
    ListRow,
    Lists,
    PoolCache,
    SpentItems,
    chunks_of,
)
from emulator.storage.sqlite.table_list import BY_KEY, HANDED, MEMBERS, ROSTERS, key_columns

MAX_SKIPPED = 500
"""Items that one operation skips before others run."""

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
        while True:
            result = await self._group_commit.write(self._try_draw, key, user, limit, now, held)
            if result is not _Pending.MORE:
                return result

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        return await self._group_commit.read(self._holdings_of_user, keys, user, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        return await self._group_commit.write(self._drop, keys, now)

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
                self._pool_cache.remove(key, pool.id, pool.list_id)
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
            self._pool_cache.remove_id(found.pool)
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
        skipped = 0
        while (item := self._pool_cache.next_item(pool)) is not None:
            if is_next(pool.family, item):
                return item
            if skipped >= MAX_SKIPPED:
                return _Pending.MORE
            count = self._spent.count_spent_at_front(pool.family, self._pool_cache.next_items(pool))
            self._pool_cache.advance(pool, count, handed=0)
            skipped += count
        return None

    def _skip_some(self, key: Key, now: int) -> bool:
        """Skip some spent items; return whether the next one may be spent too."""
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
                self._pool_cache.remove(key, pool.id, pool.list_id)
            else:
                self._pool_cache.close(key, pool)
                counts[key] = pool.handed
        return counts


_FIND = f"SELECT id, expires_at FROM rosters WHERE {BY_KEY}"
_GROUP = "space = ? AND shelf = ? AND owner = ? AND holder = ? AND place = ?"
_SET_EXPIRY = "UPDATE rosters SET expires_at = ? WHERE id = ?"
_ANNOTATE = (
    f"UPDATE rosters SET note = ?, number = ?, expires_at = max(expires_at, ?) WHERE {BY_KEY} AND expires_at > ?"
)
ADD_MEMBER = f"{MEMBERS.insert} ON CONFLICT DO NOTHING"
_LISTING = f"""
    SELECT number, id, name, note FROM members CROSS JOIN rosters ON id = roster
    WHERE member = ? AND {_GROUP} AND expires_at > ?
"""
_PAGE: Final = 100
_ALL = f"SELECT name, note, expires_at FROM rosters WHERE {_GROUP} AND (name, 1) > (?, ?) ORDER BY name LIMIT {_PAGE}"


class SqliteRosters(Tables):
    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._add_members, key, members, now, expires_at)

    async def annotate(self, key: Key, note: bytes, *, now: int, expires_at: int) -> bool:
        return await self._group_commit.write(self._annotate, key, note, now, expires_at)

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> list[Listed]:
        return await self._group_commit.read(self._listing, key, members, now)

    async def all(self, key: Key, *, now: int) -> AsyncIterator[Mapping[str, bytes]]:
        start = "", 0
        while rows := await self._group_commit.read(self._select_page, key, start):
            start = rows[-1][0], 1
            yield {name: note for name, note, expires_at in rows if now < expires_at}

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._group_commit.write(self._drop, keys)

    def _add_members(self, key: Key, members: Sequence[str], now: int, expires_at: int) -> None:
        "".join(members).encode()  # raises for text that cannot be stored, before anything is written
        connection = self._group_commit.connection
        row = connection.execute(_FIND, self._namespace.params(key)).fetchone()
        id, end = row or (None, 0)
        if id is not None and end <= now:
            ROSTERS.remove(connection, id)
            id = None
        if id is None:
            id = self._namespace.next_number()
            connection.execute(ROSTERS.insert, (id, *self._namespace.params(key), expires_at, b"", id))
        elif end < expires_at:
            connection.execute(_SET_EXPIRY, (expires_at, id))
        # In index order: with a million members, any other order takes twice as long.
        connection.executemany(ADD_MEMBER, [(id, member) for member in sorted(members)])

    def _annotate(self, key: Key, note: bytes, now: int, expires_at: int) -> bool:
        params = (note, self._namespace.next_number(), expires_at, *self._namespace.params(key), now)
        return bool(self._group_commit.connection.execute(_ANNOTATE, params).rowcount)

    def _group(self, key: Key) -> tuple[int, str, str, str, str]:
        space, kind, owner, _, user, channel = self._namespace.params(key)
        return space, kind, owner, user, channel

    def _select_page(self, key: Key, start: tuple[str, int]) -> list[tuple[str, bytes, int]]:
        return self._group_commit.connection.execute(_ALL, (*self._group(key), *start)).fetchall()

    def _listing(self, key: Key, members: Sequence[str], now: int) -> list[Listed]:
        found: dict[tuple[int, int], Listed] = {}
        for member in members:
            params = (member, *self._group(key), now)
            for number, id, name, note in self._group_commit.connection.execute(_LISTING, params):
                found.setdefault((number, id), Listed(name, note, [])).members.append(member)
        return [found[place] for place in sorted(found)]

    def _drop(self, keys: Sequence[Key]) -> None:
        found = [self._group_commit.connection.execute(_FIND, self._namespace.params(key)).fetchone() for key in keys]
        for id, _ in {row for row in found if row is not None}:
            ROSTERS.remove(self._group_commit.connection, id)
