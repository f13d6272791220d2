"""Reads many records in bounded steps."""

from __future__ import annotations

from emulator.core.keys import Key
from emulator.storage.merging import Fetch, Row
from emulator.storage.redis.client import Reply, Script, blob
from emulator.storage.redis.keys import listed_range, parse_place

STEP = 50
"""Things that one operation looks at."""


async def listing(
    script: Script, group: Key, *, now: int, limit: int, after: Key | None, matching: str
) -> list[tuple[Key, list[Reply]]]:
    """Return up to `limit` ballots or logs after `after`, each with the result of the script's `describe`."""
    found: list[tuple[Key, list[Reply]]] = []
    index, first, last = listed_range(group, after)
    while len(found) < limit:
        most = STEP if matching else min(STEP, limit - len(found))
        place, *rows = await script.run("listing", index, first, last, now, most, matching)
        found += [(parse_place(group, row[0]), row[1:]) for row in rows]
        if not place:
            break
        first = f"({place.decode()}"
    return found[:limit]


def fetch_from(start: bytes, script: Script, *args: object) -> Fetch:
    """Return what reads the pages of a ballot or log, from a bound of their sorted set on."""

    async def fetch(size: int) -> tuple[list[Row], bool]:
        nonlocal start
        last, rows = await script.run("page", blob(start), size, *args)
        start = b"(" + last
        return [tuple(row) for row in rows], bool(last)

    return fetch
