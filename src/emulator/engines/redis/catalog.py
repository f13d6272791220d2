"""The catalog on Redis: walks the index of expiries, which all things have in common, in bounded steps.

So a look at a namespace takes time with the number of its things, and writes keep no further index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

from emulator.engines.base import NEVER, Expired, Key
from emulator.engines.catalog import Thing
from emulator.engines.redis.keys import FOREVER, now_arg, parse_channel_last, parse_expiry, parse_user_last
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import CATALOG

_PARSE: Final = {b"d": parse_user_last, b"b": parse_channel_last, b"l": parse_channel_last, b"p": parse_user_last}
"""By the first letter: documents, ballots, logs, pools."""
_LISTED: Final = (b"b", b"l")


class _Found(NamedTuple):
    letter: bytes
    thing: Thing


class RedisCatalog:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        counted = Counter(found.thing.key.kind for found in await self._walk(kinds, now))
        return {kind: min(most, counted[kind]) for kind in kinds}

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        found = {thing.key.owner for letter, thing in await self._walk([kind], now) if letter in _LISTED}
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
        found = [
            thing
            for letter, thing in await self._walk(kinds, now)
            if letter not in _LISTED
            and (after is None or after < thing.key)
            and owner in (None, thing.key.owner)
            and channel in (None, thing.key.channel)
            and any(matching in (part or "") for part in thing.key[2:])
        ]
        return sorted(found, key=lambda thing: thing.key)[:limit]

    async def upcoming(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        # The index has the next expiry of a log at the latest purge: those of some logs may have passed.
        first = await self._pipeline.run(CATALOG, b"rank", now_arg(now))
        late = await self._up_to(first, now)
        rank, is_last, seen = first, False, set[Key]()
        while not is_last:
            count, end, *rows = await self._pipeline.run(CATALOG, b"upcoming", *_from(rank, now))
            rank, is_last = rank + count, bool(end)
            page = _ends(rows)
            if page or is_last:
                until = NEVER if is_last else page[-1].at
                page += [one for one in late if one.at <= until]
                late = [one for one in late if one.at > until]
            page = sorted({one for one in page if one.key not in seen}, key=lambda one: (one.at, one.key))
            seen.update(one.key for one in page)
            yield page

    async def _up_to(self, until: int, now: int) -> list[Expired]:
        """Return the coming expiries among those before a rank, in any order."""
        rank, found = 0, list[Expired]()
        while rank < until:
            count, _, *rows = await self._pipeline.run(CATALOG, b"upcoming", *_from(rank, now))
            rank += max(1, count)
            found += _ends(rows)
        return found

    async def _walk(self, kinds: Sequence[str], now: int) -> list[_Found]:
        """Return everything of these kinds that is alive and will expire, once each."""
        found: dict[bytes, _Found] = {}
        rank, is_last = 0, False
        names = [kind.replace("%", "%25").replace("|", "%7C").encode() for kind in kinds]
        while not is_last:
            count, end, *rows = await self._pipeline.run(CATALOG, b"things", *_from(rank, now), *names)
            rank, is_last = rank + count, bool(end)
            for name, ends, size in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
                found[name] = _Found(name[:1], Thing(_key(name), parse_expiry(ends), int(size)))
        return list(found.values())


def _from(rank: int, now: int) -> tuple[bytes, ...]:
    return b"%d" % rank, now_arg(now), b"%d" % FOREVER


def _ends(rows: Sequence[Any]) -> list[Expired]:
    return [Expired(_key(name), parse_expiry(at)) for name, at in zip(rows[::2], rows[1::2], strict=True)]


def _key(name: bytes) -> Key:
    return _PARSE[name[:1]](name[1:])
