"""The catalog on Redis: walks the index of expiries, which has all records, in bounded steps.

So listing a namespace takes time in proportion to its records, and writes need no further index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from emulator.core.keys import NEVER, Expired, Key
from emulator.storage.redis.keys import now_arg, parse_expiry, parse_thing
from emulator.storage.redis.pipeline import CATALOG, Pipeline
from emulator.storage.shapes import Thing

_DOCUMENT: Final = b"d"
_LISTED: Final = (b"b", b"l")


class _Found(NamedTuple):
    key: Key
    ends: bytes
    name: bytes
    """The letter of its shape, and its key."""


class RedisCatalog:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        counted = Counter(name[1:].partition(b"|")[0] for name in await self._walk(kinds, now))
        return {kind: min(most, counted[_written(kind)]) for kind in kinds}

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        found = {parse_thing(name).owner for name in await self._walk([kind], now) if name[:1] in _LISTED}
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
            each
            for each in (_Found(parse_thing(name), ends, name) for name, ends in (await self._walk(kinds, now)).items())
            if each.name[:1] not in _LISTED
            and (after is None or after < each.key)
            and owner in (None, each.key.owner)
            and channel in (None, each.key.channel)
            and any(matching in (part or "") for part in each.key[2:])
        ]
        chosen = sorted(chosen)[:limit]
        documents = [each.name for each in chosen if each.name[:1] == _DOCUMENT]
        sizes = await self._pipeline.run(CATALOG, b"sizes", *(name[1:] for name in documents)) if documents else ()
        size_of = dict(zip(documents, map(int, sizes), strict=True))
        return [Thing(each.key, parse_expiry(each.ends), size_of.get(each.name, 0)) for each in chosen]

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        walked = await self._walk(kinds, now)
        found = [Expired(parse_thing(name), parse_expiry(ends)) for name, ends in walked.items()]
        return sorted((one for one in found if one.at < NEVER), key=lambda one: (one.at, one.key))[:limit]

    async def _walk(self, kinds: Sequence[str], now: int) -> dict[bytes, bytes]:
        """Return the expiries of the live records of these kinds, by type letter and key."""
        found: dict[bytes, bytes] = {}
        rank, is_last = 0, False
        names = [_written(kind) for kind in kinds]
        while not is_last:
            count, end, *rows = await self._pipeline.run(CATALOG, b"things", b"%d" % rank, now_arg(now), *names)
            rank, is_last = rank + count, bool(end)
            found.update(zip(rows[::2], rows[1::2], strict=True))
        return found


def _written(kind: str) -> bytes:
    """Return a kind in the escaped form that keys contain."""
    return kind.replace("%", "%25").replace("|", "%7C").encode()
