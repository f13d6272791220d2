"""Lists ballots and logs from their index, in bounded steps."""

from __future__ import annotations

from emulator.engines.base import Key
from emulator.engines.redis.driver import Reply
from emulator.engines.redis.keys import listed_group, listed_range, now_arg, parse_place
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import Script

STEP = 50
"""Things that one script call looks at."""


async def listing(
    pipeline: Pipeline, script: Script, group: Key, *, now: int, limit: int, after: Key | None, matching: str
) -> list[tuple[Key, list[Reply]]]:
    """Return up to `limit` keys after `after`, each with what the script's `describe` returns."""
    found: list[tuple[Key, list[Reply]]] = []
    first, last = listed_range(group, after)
    while len(found) < limit:
        most = STEP if matching else min(STEP, limit - len(found))
        args = (listed_group(group), first, last, now_arg(now), b"%d" % most, matching.encode())
        place, *rows = await pipeline.run(script, b"listing", *args)
        found += [(parse_place(group, row[0]), row[1:]) for row in rows]
        if not place:
            break
        first = b"(" + place
    return found[:limit]
