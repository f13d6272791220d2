"""Housekeeping: reports what fell due and takes it away, in steps of bounded length."""

from __future__ import annotations

from emulator.engines.base import Expired, Key
from emulator.engines.redis.keys import moment, of_channel, of_user
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.scripts import PURGE

STEP = 250
"""Things looked at in one step."""
_READ = {b"d": of_user, b"b": of_channel, b"l": of_channel, b"p": of_user}


class Purge:
    def __init__(self, pipeline: Pipeline, namespace: bytes) -> None:
        self._pipeline = pipeline
        self._namespace = namespace

    async def __call__(self, now: int) -> list[Expired]:
        expired: list[Expired] = []
        newest: dict[Key, int] = {}
        looked = True
        while looked:
            looked, *said = await self._pipeline.run(PURGE, b"purge", moment(now), b"%d" % STEP)
            for what, at in zip(said[::2], said[1::2], strict=True):
                key = _READ[what[:1]](what[1:])
                if what[:1] == b"l":  # a log may take several steps, and is one expiry
                    newest[key] = max(int(at), newest.get(key, int(at)))
                else:
                    expired.append(Expired(key, int(at)))
        expired += [Expired(key, at) for key, at in newest.items()]
        return sorted(expired, key=lambda one: (one.at, one.key))

    async def reset(self) -> None:
        await self._pipeline.run(PURGE, b"reset")

    async def tidy(self) -> None:
        """Sweep what earlier generations have left. Redis itself gives back the room of all else."""
        dead = await self._pipeline.send(b"SMEMBERS", self._namespace + b":dead")
        if not dead:
            return
        left = tuple(self._namespace + b":" + generation + b":" for generation in dead)
        pattern = b"".join(b"\\" + bytes((one,)) if one in rb"*?[]\^-" else bytes((one,)) for one in self._namespace)
        cursor = b"0"
        while True:
            cursor, keys = await self._pipeline.send(b"SCAN", cursor, b"MATCH", pattern + b":*", b"COUNT", b"%d" % STEP)
            if gone := [key for key in keys if key.startswith(left)]:
                await self._pipeline.send(b"UNLINK", *gone)
            if cursor == b"0":
                break
        await self._pipeline.send(b"SREM", self._namespace + b":dead", *dead)
