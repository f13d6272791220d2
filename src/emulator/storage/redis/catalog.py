"""The catalog on Redis: walks the index of expiries, which has all records, in bounded steps.

So listing a namespace takes time in proportion to its records, and writes need no further index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from emulator.core.keys import NEVER, Expired, Key
from emulator.storage.redis.client import Script
from emulator.storage.redis.keys import escape, parse_thing
from emulator.storage.shapes import Thing

STEP = 500
"""Things that one operation looks at."""
_LISTED: Final = (b"b", b"l")
"""The letters of ballots and logs, which have listings of their own."""


class _Found(NamedTuple):
    key: Key
    ends: int
    letter: bytes
    size: int


class RedisCatalog:
    def __init__(self, namespace: Script) -> None:
        self._namespace = namespace

    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        counted = Counter(found.key.kind for found in await self._walk(kinds, now))
        return {kind: min(most, counted[kind]) for kind in kinds}

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        found = {each.key.owner for each in await self._walk([kind], now) if each.letter in _LISTED}
        return sorted(owner for owner in found if owner > after)[:limit]

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
        chosen = [
            Thing(found.key, found.ends, found.size)
            for found in await self._walk(kinds, now)
            if found.letter not in _LISTED
            and (after is None or after < found.key)
            and owner in (None, found.key.owner)
            and channel in (None, found.key.channel)
            and any(matching in (part or "") for part in found.key[2:])
        ]
        return sorted(chosen)[:limit]

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        found = [Expired(each.key, each.ends) for each in await self._walk(kinds, now) if each.ends < NEVER]
        return sorted(found, key=lambda one: (one.at, one.key))[:limit]

    async def _walk(self, kinds: Sequence[str], now: int) -> list[_Found]:
        """Return the live records of these kinds."""
        found: dict[bytes, _Found] = {}
        rank, is_last = 0, False
        names = [escape(kind) for kind in kinds]
        while not is_last:
            count, is_last, *rows = await self._namespace.run("expiries", rank, STEP, names, now)
            rank += count
            for name, ends, size in rows:  # one may move to a later rank meanwhile
                found[name] = _Found(parse_thing(name), ends, name[:1], size)
        return list(found.values())
