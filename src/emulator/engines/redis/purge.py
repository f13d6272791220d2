"""Housekeeping: removes expired records and reports them, in bounded steps."""

from __future__ import annotations

from emulator.engines.redis.keys import escaped, now_arg, parse_thing
from emulator.engines.redis.nodes import Nodes
from emulator.engines.redis.pipeline import PURGE, Pipeline
from emulator.engines.shapes import Expired, Key

STEP = 250
"""Things handled in one step."""


class Purge:
    def __init__(self, pipeline: Pipeline, nodes: Nodes, namespace: bytes) -> None:
        self._pipeline = pipeline
        self._nodes = nodes
        self._namespace = namespace

    async def __call__(self, *, now: int) -> list[Expired]:
        expired: list[Expired] = []
        newest: dict[Key, int] = {}
        handled = True
        while handled:
            handled, *reported = await self._pipeline.run(PURGE, b"purge", now_arg(now), b"%d" % STEP)
            for name, at in zip(reported[::2], reported[1::2], strict=True):
                key = parse_thing(name)
                if name[:1] == b"l":  # a log may take several steps, but is reported once
                    newest[key] = max(int(at), newest.get(key, int(at)))
                else:
                    expired.append(Expired(key, int(at)))
        expired += [Expired(key, at) for key, at in newest.items()]
        return sorted(expired, key=lambda one: (one.at, one.key))

    async def reset(self) -> None:
        await self._pipeline.run(PURGE, b"reset")

    async def tidy(self) -> None:
        """Delete the keys of generations before a reset. Redis frees all other space by itself."""
        moves = self._nodes.moves
        dead = await self._pipeline.run(PURGE, b"dead")
        if not dead:
            return
        prefixes = tuple(self._namespace + b":" + generation + b":" for generation in dead)
        pattern = escaped(self._namespace)
        cursor = b"0"
        while True:
            cursor, keys = await self._pipeline.send(b"SCAN", cursor, b"MATCH", pattern + b":*", b"COUNT", b"%d" % STEP)
            if unreachable := [key for key in keys if key.startswith(prefixes)]:
                await self._pipeline.send(b"UNLINK", *unreachable)
            if cursor == b"0":
                break
        await self._pipeline.run(PURGE, b"dead")  # of another node now, if the data has moved: SCAN names no key
        if moves == self._nodes.moves:  # otherwise SCAN may have missed keys, because it lists one node of a cluster
            await self._pipeline.run(PURGE, b"bury", *dead)
