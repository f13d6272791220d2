"""Pools and rosters on Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from emulator.core.bounded_cache import BoundedCache
from emulator.core.keys import Key
from emulator.storage.pools import (
    MAX_SKIPPED,
    Assignment,
    Drawn,
    Holding,
    Limit,
    Progress,
    RosterInfo,
    Stock,
    writes_of_assignment,
)
from emulator.storage.redis.client import Client
from emulator.storage.redis.documents import KeyLocks, update_attempts
from emulator.storage.redis.keys import NAME_LAST, USER_LAST, found_by_key, unescape

_MAX_NOTES = 1_024
"""Pools whose notes are cached."""


class RedisPools:
    """Pools on Redis: a list to pop from, the items of each user, and the spent items of each family of pools."""

    def __init__(self, client: Client) -> None:
        self._run = client.script("pools").run
        self._key_locks = KeyLocks()
        self._notes: BoundedCache[Key, bytes] = BoundedCache(_MAX_NOTES)
        """The note that each pool had at its last draw. A draw with an outdated one returns the present one."""

    async def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        if any("\0" in item for item in items):
            raise ValueError("an item must not contain NUL")
        if not await self._run("fill", source, [*items], expires_at, now):
            raise ValueError(f"a pool uses this list: {source}")

    async def items(self, source: Key, at: int, *, now: int) -> Sequence[str]:
        return [item.decode() for item in await self._run("items", source, at, now)]

    async def assign(
        self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int, sizes: Mapping[Key, int] = {}
    ) -> bool:
        async with self._key_locks.hold_locks(keys):
            async for _ in update_attempts():
                live = await self._read_stocks(keys, now)
                written = writes_of_assignment(change, {key: stock for key, (_, stock) in live.items()}, keys)
                known = [live[key][0] if key in live else b"0" for key in keys]
                assigned = [(key, source, note) for key, (source, note) in written.items()]
                args = keys, known, sizes.items(), assigned, expires_at, now
                outcome, *taken = await self._run("assign", *args)
                if taken:
                    raise ValueError(f"another pool uses this list: {USER_LAST.parse(taken[0])}")
                if outcome == b"short":
                    return False
                if outcome != b"again":
                    break
        for key in written:
            while await self._run("skip", key, NAME_LAST.group(key), MAX_SKIPPED, now):
                pass
        return True

    async def stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        live = await self._read_stocks(keys, now)
        return {key: stock for key, (_, stock) in live.items()}

    async def counts(self, keys: Sequence[Key], *, now: int) -> dict[Key, Progress]:
        found = await self._run("counts", keys, now)
        return {key: Progress(*counts) for key, counts in found_by_key(keys, found).items()}

    async def discard(self, sources: Sequence[Key], *, now: int) -> None:
        await self._run("discard", sources)

    async def draw(self, key: Key, user: str, *, limit: Limit, now: int, held: bool = False) -> Drawn:
        args = key, NAME_LAST.group(key), user, MAX_SKIPPED, held
        while True:
            note = self._notes.get(key)
            terms = (None, 0) if note is None else (note, limit(note))
            outcome, *found = await self._run("draw", *args, *terms, now)
            if outcome == b"note":
                self._notes[key] = found[0]
            elif outcome == b"done":
                items, *item = found
                return Drawn(item[0].decode() if item else None, tuple(each.decode() for each in items))

    async def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        found = await self._run("held", keys, user, now)
        held = {}
        for key, (current, items) in zip(keys, found, strict=True):
            if items:
                held[key] = Holding(tuple(item.decode() for item in items), current)
        return held

    async def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        counts = await self._run("drop", keys, now)
        # A repeated key counts once: the second finds nothing.
        return found_by_key(keys, counts)

    async def _read_stocks(self, keys: Sequence[Key], now: int) -> dict[Key, tuple[bytes, Stock]]:
        """Return the live pools with their versions."""
        found = await self._run("stocks", keys, now)
        live = {}
        for key, (version, source, note) in found_by_key(keys, found).items():
            live[key] = version, Stock(USER_LAST.parse(source), note)
        return live


class RedisRosters:
    """Rosters on Redis: for each group, one hash of its rosters, and one of the rosters of each member."""

    def __init__(self, client: Client) -> None:
        self._script = client.script("rosters", NAME_LAST)

    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        await self._script.run("add_members", key, [*members], expires_at, now)

    async def annotate(self, key: Key, note: bytes, *, now: int, expires_at: int) -> bool:
        return bool(await self._script.run("annotate", key, note, expires_at, now))

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> list[RosterInfo]:
        found = await self._script.run("listing", NAME_LAST.group(key), [*members], now)
        rosters = []
        for _, _, name, note, *places in found:
            rosters.append(RosterInfo(unescape(name.decode()), note, [members[at] for at in places]))
        return rosters

    async def all(self, key: Key, *, now: int) -> AsyncIterator[Mapping[str, bytes]]:
        async for rows in self._script.scan("all", NAME_LAST.group(key), now):
            yield {unescape(name.decode()): note for name, note in rows}

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._script.run("drop", keys)
