"""Takes over what earlier versions wrote, in bounded steps. Several nodes may do this at the same time."""

from __future__ import annotations

from emulator.engines.redis.keys import name_last_prefix, parse_user_last
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import POOLS, PURGE

_FORMAT = b"3"


async def upgrade(pipeline: Pipeline, namespace: bytes) -> None:
    """Note as spent what the existing pools have handed out, and index the ballots and logs, unless that was done."""
    marker = namespace + b":format"
    if await pipeline.send(b"GET", marker) == _FORMAT:
        return
    cursor = b""
    while cursor != b"0":
        cursor, *histories = await pipeline.run(POOLS, b"histories", cursor or b"0")
        for pool, key in zip(histories[::2], histories[1::2], strict=True):
            family, position = name_last_prefix(parse_user_last(key)), b""
            while position != b"0":
                position = await pipeline.run(POOLS, b"spend", family, pool, position or b"0")
    cursor = b""
    while cursor != b"0":
        cursor = await pipeline.run(PURGE, b"enlist", cursor or b"0")
    await pipeline.send(b"SET", marker, _FORMAT)
