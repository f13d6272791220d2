"""Pools on SQLite: a row per item that was handed out, and lists of rows that hold many items."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from emulator.engines.base import Key
from emulator.engines.pools import Assignment, Holding, Stock
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.lists import Listed, Lists, packed
from emulator.engines.sqlite.namespace_ids import KEY, KEY_COLUMNS, NamespaceIds
from emulator.engines.sqlite.pool_cache import CachedPool, PoolCache

PASSED = 500
"""Items that all pools together pass over between two returns to the event loop."""

_STOCK = f"""
    SELECT pools.expires_at, note, {", ".join(f"lists.{column}" for column in KEY_COLUMNS.split(", "))}
    FROM (SELECT * FROM pools WHERE {KEY} AND closed = 0) AS pools CROSS JOIN lists ON lists.id = pools.list
"""
_ROOT = f"SELECT root FROM pools WHERE {KEY} LIMIT 1"
# First what was handed out, then whether it is still remembered; SQLite might want to do it the other way round.
_HANDED = """
    SELECT 1 FROM handed CROSS JOIN pools ON pools.id = handed.pool
    WHERE handed.root = ? AND handed.sum = ? AND handed.item = ? AND pools.expires_at > ? LIMIT 1
"""
_HELD = """
    SELECT handed.item, pools.closed FROM handed CROSS JOIN pools ON pools.id = handed.pool
    WHERE handed.root = ? AND handed.holder = ? AND pools.expires_at > ? ORDER BY handed.pool, handed.nth
"""
_HAS = "SELECT nth FROM handed WHERE root = ? AND holder = ? AND pool = ? ORDER BY nth DESC LIMIT 1"
_HAND = "INSERT INTO handed (pool, ordinal, root, item, sum, holder, nth) VALUES (?, ?, ?, ?, ?, ?, ?)"


class _Pending(Enum):
    MORE = 0
    """There may be an item left, but first others have to have their turn."""


class SqlitePools:
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, lists: Lists, pool_cache: PoolCache) -> None:
        self._group_commit = group_commit
        self._namespace = namespace
        self._lists = lists
        self._pool_cache = pool_cache
        self._passed = 0
        """Items that were passed over in this turn."""
        self._passing: dict[Key, asyncio.Event] = {}
        """Pools that one draw is passing over items of, for all who wait."""

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._fill, source, packed(items), now, expires_at)

    async def assign(self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._supply, keys, change, now, expires_at)

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        return await self._group_commit.read(self._stocks, keys, now)

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        await self._group_commit.write(self._discard, sources)

    async def draw(self, key: Key, holder: str, *, most: int, now: int, source: Key | None = None) -> str | None:
        while True:
            while key in self._passing:
                await self._passing[key].wait()
            answer = await self._group_commit.write(self._draw, key, holder, most, now, source)
            if answer is not _Pending.MORE:
                return answer
            if key not in self._passing:
                await self._pass_over(key, now)

    async def held(self, keys: Sequence[Key], holder: str, *, now: int) -> dict[Key, Holding]:
        return await self._group_commit.read(self._held, keys, holder, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        return await self._group_commit.write(self._drop, keys, now)

    def flush(self) -> None:
        self._passed = 0

    def forget(self) -> None:
        self._passed = 0

    def _fill(self, source: Key, chunks: Sequence[tuple[int, bytes]], now: int, expires_at: int) -> None:
        found = self._lists.find(source)
        if found is not None and found.pool is not None and now < found.expires_at:
            raise ValueError(f"a pool hands out from this list: {source}")
        self._lists.add(self._live(source, found, now) or self._lists.fresh(source, expires_at), chunks, expires_at)

    def _supply(self, keys: Sequence[Key], change: Assignment, now: int, expires_at: int) -> None:
        written = dict(change(self._stocks(keys, now)))
        if strangers := written.keys() - set(keys):
            raise ValueError(f"a supply may only write the keys it was given, not {strangers}")
        self._check_sources(written, now)
        for key, (source, note) in written.items():
            pool = self._pool_cache.find(key)
            if pool is not None and pool.expires_at <= now:
                self._pool_cache.end(key, pool)
                pool = None
            found = self._live(source, self._lists.find(source), now) or self._lists.fresh(source, expires_at)
            if pool is None:
                pool = self._pool_cache.fresh(key, found.id, note, expires_at)
            else:
                self._pool_cache.assign(pool, found.id, note, expires_at)
            self._lists.give(found.id, pool.id, expires_at)

    def _check_sources(self, stocks: Mapping[Key, Stock], now: int) -> None:
        """Raise ValueError when two pools would hand out from one list."""
        if len({source for source, _ in stocks.values()}) < len(stocks):
            raise ValueError("each pool needs a list of its own")
        for key, (source, _) in stocks.items():
            found, pool = self._lists.find(source), self._pool_cache.find(key)
            if found is None or found.pool is None or found.expires_at <= now:
                continue
            if pool is None or found.pool != pool.id:
                raise ValueError(f"another pool hands out from this list: {source}")

    def _live(self, source: Key, found: Listed | None, now: int) -> Listed | None:
        """The list that was found; one that is past its end is taken away."""
        if found is None or now < found.expires_at:
            return found
        if found.pool is None:
            self._lists.tombstone(found.id)
        else:
            self._pool_cache.end_user(found.pool)
        return None

    def _stocks(self, keys: Sequence[Key], now: int) -> dict[Key, Stock]:
        stocks = {}
        for key in keys:
            row = self._group_commit.connection.execute(_STOCK, self._namespace.of(key)).fetchone()
            if row is not None and now < row[0]:
                stocks[key] = Stock(Key(*row[2:]), row[1])
        return stocks

    def _discard(self, sources: Sequence[Key]) -> None:
        for found in [self._lists.find(source) for source in dict.fromkeys(sources)]:
            if found is not None and found.pool is None:
                self._lists.tombstone(found.id)

    def _draw(self, key: Key, holder: str, most: int, now: int, source: Key | None) -> str | _Pending | None:
        holder.encode()  # what cannot be stored has to fail before anything is written
        pool = self._pool_cache.alive(key, now)
        if pool is None or (source is not None and not self._gives(pool, source)):
            return None
        connection = self._group_commit.connection
        row = connection.execute(_HAS, (pool.root, holder, pool.id)).fetchone()
        nth = row[0] + 1 if row else 1
        if nth > most:
            return None
        item = self._next(pool, now)
        if isinstance(item, str):
            connection.execute(_HAND, (pool.id, pool.handed + 1, pool.root, item, _sum(item), holder, nth))
            self._pool_cache.step(pool, handed=1)
        return item

    def _gives(self, pool: CachedPool, source: Key) -> bool:
        """Whether a pool hands out from this list."""
        found = self._lists.find(source)
        return found is not None and found.pool == pool.id

    def _next(self, pool: CachedPool, now: int) -> str | _Pending | None:
        """The first item from here on that was not handed out; those before it are left behind."""
        connection = self._group_commit.connection
        while (item := self._pool_cache.item(pool)) is not None:
            if connection.execute(_HANDED, (pool.root, _sum(item), item, now)).fetchone() is None:
                return item
            if self._passed >= PASSED:
                return _Pending.MORE
            self._pool_cache.step(pool, handed=0)
            self._passed += 1
        return None

    async def _pass_over(self, key: Key, now: int) -> None:
        """Come to an item that was not handed out, or to the end of the list, in as many turns as that takes."""
        self._passing[key] = passed = asyncio.Event()
        try:
            while await self._group_commit.write(self._passes, key, now):
                pass
        finally:
            del self._passing[key]
            passed.set()

    def _passes(self, key: Key, now: int) -> bool:
        pool = self._pool_cache.alive(key, now)
        return pool is not None and self._next(pool, now) is _Pending.MORE

    def _held(self, keys: Sequence[Key], holder: str, now: int) -> dict[Key, Holding]:
        return {key: holding for key in keys if (holding := self._holding(key, holder, now)).items}

    def _holding(self, key: Key, holder: str, now: int) -> Holding:
        connection = self._group_commit.connection
        root = connection.execute(_ROOT, self._namespace.of(key)).fetchone()
        rows = connection.execute(_HELD, (*root, holder, now)).fetchall() if root else []
        return Holding(tuple(item for item, _ in rows), sum(not closed for _, closed in rows))

    def _drop(self, keys: Sequence[Key], now: int) -> dict[Key, int]:
        counts = {}
        for key, pool in list(self._found(keys)):  # found all before anything is written
            if pool.expires_at <= now:
                self._pool_cache.end(key, pool)
            else:
                self._pool_cache.close(key, pool)
                counts[key] = pool.handed
        return counts

    def _found(self, keys: Sequence[Key]) -> Iterator[tuple[Key, CachedPool]]:
        for key in dict.fromkeys(keys):
            if (pool := self._pool_cache.find(key)) is not None:
                yield key, pool


def _sum(item: str) -> int:
    """A short number by which items are looked for; it may be the same for two. In four bytes, as SQLite counts."""
    return zlib.crc32(item.encode()) - (1 << 31)
