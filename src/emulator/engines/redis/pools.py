"""Pools on Redis: a list that is drawn from at its front, and what each pool has handed out, to look items up in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emulator.engines.base import Key
from emulator.engines.pools import Assignment, Holding, Stock
from emulator.engines.redis.key_locks import KeyLocks, attempts
from emulator.engines.redis.keys import by_user, ending, moment, of_user
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import POOLS

PASSED = 500
"""Items that a draw passes over before others have their turn."""

_Versions = Mapping[Key, bytes]


class RedisPools:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._key_locks = KeyLocks()

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        texts = [item.encode() for item in items]
        if any(b"\0" in text for text in texts):
            raise ValueError("an item must not contain NUL")
        if not await self._pipeline.run(POOLS, b"fill", by_user(source), moment(now), ending(expires_at), *texts):
            raise ValueError(f"a pool hands out from this list: {source}")

    async def assign(self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int) -> None:
        names = {key: by_user(key) for key in keys}
        async with self._key_locks.turn(names.values()):
            async for _ in attempts():
                stocks, versions = await self._stocks(keys, now)
                written = dict(change(stocks))
                if strangers := written.keys() - set(keys):
                    raise ValueError(f"a supply may only write the keys it was given, not {strangers}")
                if len({source for source, _ in written.values()}) < len(written):
                    raise ValueError("each pool needs a list of its own")
                args = [b"supply", moment(now), ending(expires_at), b"%d" % len(names)]
                for key, name in names.items():
                    args += (name, versions.get(key, b"0"))
                for key, (source, note) in written.items():
                    args += (names[key], by_user(source), note)
                became, *taken = await self._pipeline.run(POOLS, *args)
                if taken:
                    raise ValueError(f"another pool hands out from this list: {of_user(taken[0])}")
                if became != b"again":
                    break

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        stocks, _ = await self._stocks(keys, now)
        return stocks

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        await self._pipeline.run(POOLS, b"discard", *map(by_user, sources))

    async def draw(self, key: Key, user: str, *, most: int, now: int, source: Key | None = None) -> str | None:
        of = b"" if source is None else by_user(source)
        args = (by_user(key), user.encode(), b"%d" % most, moment(now), b"%d" % PASSED, of)
        while True:
            became, *item = await self._pipeline.run(POOLS, b"draw", *args)
            if became != b"more":
                return item[0].decode() if item else None

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        found = await self._pipeline.run(POOLS, b"held", user.encode(), moment(now), *map(by_user, keys))
        return {
            key: Holding(tuple(item.decode() for item in items), current)
            for key, (current, items) in zip(keys, found, strict=True)
            if items
        }

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        counts = await self._pipeline.run(POOLS, b"drop", moment(now), *map(by_user, keys))
        # Of a key that stands twice, the second has found nothing.
        return {key: count for key, count in zip(keys, counts, strict=True) if count is not None}

    async def _stocks(self, keys: Sequence[Key], now: int) -> tuple[dict[Key, Stock], _Versions]:
        found = await self._pipeline.run(POOLS, b"stocks", moment(now), *map(by_user, keys))
        live = [(key, pool) for key, pool in zip(keys, found, strict=True) if pool is not None]
        stocks = {key: Stock(of_user(source), note) for key, (_, source, note) in live}
        return stocks, {key: version for key, (version, _, _) in live}
