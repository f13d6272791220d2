"""Upgrades the data of earlier versions, in bounded steps. Several nodes may do this at the same time."""

from __future__ import annotations

import logging
from importlib.metadata import version
from typing import Final

from emulator.engines.engine import Upgrades
from emulator.engines.redis.keys import name_last_prefix, parse_user_last
from emulator.engines.redis.pipeline import POOLS, PURGE, Pipeline
from emulator.errors import EngineError

FORMAT: Final = 3
_log = logging.getLogger("emulator.engines")


async def upgrade(pipeline: Pipeline, namespace: bytes, upgrades: Upgrades) -> None:
    """Raise the data to the current format, and note that, unless it has that format.

    Raises `EngineError` if the format is newer, or if it is older and may not be raised.
    """
    marker = namespace + b":format"
    # The format, then the version of extcli that raised it.
    found, _, writer = (await pipeline.send(b"GET", marker) or b"").decode().partition(" ")
    number = int(found) if found.isdecimal() else 0
    if number > FORMAT:
        needed = f"{writer} or later" if writer else "of the version that wrote it"
        raise EngineError(
            f"Redis: the data was written by a newer version (format {number}; this version reads formats up to "
            f"{FORMAT}); use extcli {needed}"
        )
    if number == FORMAT:
        return
    is_new = not number and not await pipeline.send(b"EXISTS", namespace, namespace + b":numbers")
    if not is_new and not upgrades.allowed:
        raise EngineError(
            f"Redis: the data has format {number or 1}, this version needs format {FORMAT}, and --no-upgrade is set; "
            "back up Redis, then start extcli serve without it"
        )
    await _note_handed_as_spent(pipeline)
    await _index_ballots_and_logs(pipeline)
    await pipeline.send(b"SET", marker, f"{FORMAT} {version('extcli')}".encode())
    if not is_new:
        _log.info("Redis: raised the data from format %s to %s%s", number or 1, FORMAT, upgrades.note)


async def _note_handed_as_spent(pipeline: Pipeline) -> None:
    """Record the items that existing pools have handed out as spent."""
    cursor = b""
    while cursor != b"0":
        cursor, *histories = await pipeline.run(POOLS, b"histories", cursor or b"0")
        for pool, key in zip(histories[::2], histories[1::2], strict=True):
            family, position = name_last_prefix(parse_user_last(key)), b""
            while position != b"0":
                position = await pipeline.run(POOLS, b"spend", family, pool, position or b"0")


async def _index_ballots_and_logs(pipeline: Pipeline) -> None:
    """Enter the existing ballots and logs into the index for listings."""
    cursor = b""
    while cursor != b"0":
        cursor = await pipeline.run(PURGE, b"enlist", cursor or b"0")
