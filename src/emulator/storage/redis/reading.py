"""Lists the ballots or logs of a group, in bounded steps."""

from __future__ import annotations

from emulator.core.keys import Key
from emulator.storage.redis.keys import listed_group, listed_range, now_arg, parse_place
from emulator.storage.redis.pipeline import Pipeline, Script
from emulator.storage.redis.server import Reply

STEP = 50
"""Things that one script call looks at."""


async def listing(
    pipeline: Pipeline, script: Script, group: Key, *, now: int, limit: int, after: Key | None, matching: str
) -> list[tuple[Key, list[Reply]]]:
    """Return up to `limit` keys after `after`, each with the result of the script's `describe`."""
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
