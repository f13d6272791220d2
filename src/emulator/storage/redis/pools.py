"""Pools and rosters on Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from emulator.core.bounded_cache import BoundedCache
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
from emulator.storage.redis.documents import KeyLocks, attempts
from emulator.storage.redis.keys import (
    expiry_arg,
    name_last,
    name_last_prefix,
    now_arg,
    parse_part,
    parse_user_last,
    user_last,
)
from emulator.storage.redis.load import resolve_spent
from emulator.storage.redis.pipeline import POOLS, ROSTERS, Pipeline

MAX_SKIPPED = 500
"""Items that one script call skips."""
_MAX_NOTES: Final = 1_024
"""Pools whose notes are cached."""


class RedisPools:
    """Pools on Redis: a list to pop from, the items of each user, and the spent items of each family of pools."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._key_locks = KeyLocks()
        self._notes: BoundedCache[Key, bytes] = BoundedCache(_MAX_NOTES)
        """The note that each pool had at its last draw. A draw with an outdated one returns the present one."""

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        texts = [item.encode() for item in items]
        if any(b"\0" in text for text in texts):
            raise ValueError("an item must not contain NUL")
        args = (user_last(source), now_arg(now), expiry_arg(expires_at))
        if not await self._pipeline.run(POOLS, b"fill", *args, *texts):
            raise ValueError(f"a pool uses this list: {source}")

    async def items(self, source: Key, at: int, *, now: int) -> Sequence[str]:
        found = await self._pipeline.run(POOLS, b"items", user_last(source), now_arg(now), b"%d" % at)
        return [item.decode() for item in found]

    async def assign(
        self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int, sizes: Mapping[Key, int] = NO_SIZES
    ) -> bool:
        names = {key: user_last(key) for key in keys}
        async with self._key_locks.hold(names.values()):
            async for _ in attempts():
                stocks, versions = await self._stocks(keys, now)
                written = writes_of_assignment(change, stocks, keys)
                for key, (source, _) in written.items():
                    await resolve_spent(self._pipeline, user_last(source), name_last_prefix(key))
                args = [b"assign", now_arg(now), expiry_arg(expires_at), b"%d" % len(names)]
                for key, name in names.items():
                    args += (name, versions.get(key, b"0"))
                args.append(b"%d" % len(sizes))
                for source, size in sizes.items():
                    args += (user_last(source), b"%d" % size)
                for key, (source, note) in written.items():
                    args += (names[key], user_last(source), note)
                outcome, *taken = await self._pipeline.run(POOLS, *args)
                if taken:
                    raise ValueError(f"another pool uses this list: {parse_user_last(taken[0])}")
                if outcome == b"short":
                    return False
                if outcome != b"again":
                    break
        for key in written:
            args = [user_last(key), name_last_prefix(key), now_arg(now), b"%d" % MAX_SKIPPED]
            while await self._pipeline.run(POOLS, b"skip", *args):
                pass
        return True

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        stocks, _ = await self._stocks(keys, now)
        return stocks

    async def counts(self, keys: Sequence[Key], *, now: int) -> dict[Key, Count]:
        found = await self._pipeline.run(POOLS, b"counts", now_arg(now), *map(user_last, keys))
        return {key: Count(*counts) for key, counts in zip(keys, found, strict=True) if counts is not None}

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        await self._pipeline.run(POOLS, b"discard", *map(user_last, sources))

    async def draw(self, key: Key, user: str, *, limit: Limit, now: int, held: bool = False) -> Drawn:
        args = (user_last(key), name_last_prefix(key), user.encode(), now_arg(now), b"%d" % MAX_SKIPPED, b"%d" % held)
        while True:
            note = self._notes.get(key)
            terms = () if note is None else (b"%d" % limit(note), note)
            outcome, *found = await self._pipeline.run(POOLS, b"draw", *args, *terms)
            if outcome == b"note":
                self._notes[key] = found[0]
            elif outcome == b"done":
                items, *item = found
                return Drawn(item[0].decode() if item else None, tuple(each.decode() for each in items))

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        found = await self._pipeline.run(POOLS, b"held", user.encode(), now_arg(now), *map(user_last, keys))
        return {
            key: Holding(tuple(item.decode() for item in items), current)
            for key, (current, items) in zip(keys, found, strict=True)
            if items
        }

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        counts = await self._pipeline.run(POOLS, b"drop", now_arg(now), *map(user_last, keys))
        # A repeated key counts once: the second finds nothing.
        return {key: count for key, count in zip(keys, counts, strict=True) if count is not None}

    async def _stocks(self, keys: Sequence[Key], now: int) -> tuple[dict[Key, Stock], Mapping[Key, bytes]]:
        """Return the live pools, and their versions."""
        found = await self._pipeline.run(POOLS, b"stocks", now_arg(now), *map(user_last, keys))
        live = [(key, pool) for key, pool in zip(keys, found, strict=True) if pool is not None]
        stocks = {key: Stock(parse_user_last(source), note) for key, (_, source, note) in live}
        return stocks, {key: version for key, (version, _, _) in live}


class RedisRosters:
    """Rosters on Redis: for each group, one hash of its rosters, and one of the rosters of each member."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        args = (name_last(key), now_arg(now), expiry_arg(expires_at))
        await self._pipeline.run(ROSTERS, b"add_members", *args, *[member.encode() for member in members])

    async def annotate(self, key: Key, note: bytes, *, now: int, expires_at: int) -> bool:
        args = (name_last(key), now_arg(now), expiry_arg(expires_at), note)
        return bool(await self._pipeline.run(ROSTERS, b"annotate", *args))

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> list[Listed]:
        args = (name_last_prefix(key), now_arg(now))
        found = await self._pipeline.run(ROSTERS, b"listing", *args, *[member.encode() for member in members])
        return [Listed(parse_part(name), note, [members[at] for at in places]) for _, _, name, note, *places in found]

    async def all(self, key: Key, *, now: int) -> AsyncIterator[Mapping[str, bytes]]:
        cursor = b""
        while cursor != b"0":
            args = (name_last_prefix(key), now_arg(now), cursor or b"0")
            cursor, *found = await self._pipeline.run(ROSTERS, b"all", *args)
            yield {parse_part(name): note for name, note in zip(found[::2], found[1::2], strict=True)}

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._pipeline.run(ROSTERS, b"drop", *map(name_last, keys))
