"""Housekeeping: removes expired records and reports them, in bounded steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.core.keys import Expired
from emulator.storage.redis.keys import escaped, now_arg, parse_thing
from emulator.storage.redis.pipeline import PURGE, ROSTERS, Pipeline

STEP = 250
"""Things handled in one step."""


class Purge:
    def __init__(self, pipeline: Pipeline, namespace: bytes) -> None:
        self._pipeline = pipeline
        self._namespace = namespace

    async def __call__(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        handled = True
        while handled:
            handled, *reported = await self._pipeline.run(PURGE, b"purge", now_arg(now), b"%d" % STEP)
            yield [Expired(parse_thing(name), int(at)) for name, at in zip(reported[::2], reported[1::2], strict=True)]

    async def reset(self) -> None:
        await self._pipeline.run(PURGE, b"reset")

    async def tidy(self) -> None:
        """Delete what is left of removed rosters, and the keys of generations before a reset.

        Redis frees all other space by itself.
        """
        while await self._pipeline.run(ROSTERS, b"sweep"):
            pass
        dead = await self._pipeline.run(PURGE, b"dead")
        if not dead:
            return
        prefixes = tuple(self._namespace + b":" + generation + b":" for generation in dead)
        async for keys in self._pipeline.scan(escaped(self._namespace) + b":*"):
            if unreachable := [key for key in keys if key.startswith(prefixes)]:
                await self._pipeline.send(b"UNLINK", *unreachable)
        await self._pipeline.run(PURGE, b"bury", *dead)
