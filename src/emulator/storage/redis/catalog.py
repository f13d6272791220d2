"""The catalog on Redis: walks the index of expiries, which has all records, in bounded steps.

So listing a namespace takes time in proportion to its records, and writes need no further index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from emulator.core.keys import NEVER, Expired
from emulator.storage.redis.client import Script
from emulator.storage.redis.keys import escape, parse_thing
from emulator.storage.shapes import Search, Thing

STEP = 500
"""Things that one operation looks at."""
_LISTED = (b"b", b"l")
"""The letters of ballots and logs, which have listings of their own."""


class RedisCatalog:
    def __init__(self, namespace: Script) -> None:
        self._namespace = namespace

    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        counted = Counter(thing.key.kind for _, thing in await self._walk(kinds, now))
        return {kind: min(most, counted[kind]) for kind in kinds}

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        things = await self._walk([kind], now)
        found = {thing.key.owner for letter, thing in things if letter in _LISTED}
        return sorted(owner for owner in found if owner > after)[:limit]

    async def things(self, search: Search, *, now: int, limit: int) -> list[Thing]:
        kinds, owner, channel, matching, after = search
        chosen = [
            thing
            for letter, thing in await self._walk(kinds, now)
            if letter not in _LISTED
            and (after is None or after < thing.key)
            and owner in (None, thing.key.owner)
            and channel in (None, thing.key.channel)
            and any(matching in (part or "") for part in thing.key[2:])
        ]
        return sorted(chosen)[:limit]

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        things = [thing for _, thing in await self._walk(kinds, now)]
        found = [Expired(thing.key, thing.expires_at) for thing in things if thing.expires_at < NEVER]
        return sorted(found, key=lambda one: (one.at, one.key))[:limit]

    async def _walk(self, kinds: Sequence[str], now: int) -> list[tuple[bytes, Thing]]:
        """Return the live records of these kinds, with the letters of their types."""
        found: dict[bytes, tuple[bytes, Thing]] = {}
        rank, is_last = 0, False
        names = [escape(kind) for kind in kinds]
        while not is_last:
            count, is_last, *rows = await self._namespace.run("expiries", rank, STEP, names, now)
            rank += count
            for name, ends, size in rows:  # one may move to a later rank meanwhile
                found[name] = name[:1], Thing(parse_thing(name), ends, size)
        return list(found.values())
