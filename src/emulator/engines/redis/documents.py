"""Documents on Redis: a hash each. An update reads, changes here, and writes if nobody else has written meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Change, Key
from emulator.engines.redis.calls import Calls
from emulator.engines.redis.names import beside_holder, by_holder, ending, moment
from emulator.engines.redis.queues import Queues, attempts
from emulator.engines.redis.scripts import DOCUMENTS


class RedisDocuments:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._queues = Queues()

    async def read(self, keys: Sequence[Key], *, now: int) -> dict[Key, bytes]:
        return {key: value for key, (_, value) in (await self._read(keys, now)).items()}

    async def update(self, keys: Sequence[Key], change: Change, *, now: int, expires_at: int) -> dict[Key, bytes]:
        names = {key: by_holder(key) for key in keys}
        async with self._queues.turn(names.values()):
            async for _ in attempts():
                found = await self._read(keys, now)
                written = dict(change({key: value for key, (_, value) in found.items()}))
                if strangers := written.keys() - set(keys):
                    raise ValueError(f"a change may only write the keys it was given, not {strangers}")
                if not written:
                    break
                args = [b"write", moment(now), ending(expires_at), b"%d" % len(names)]
                for key, name in names.items():
                    args += (name, found[key][0] if key in found else b"0")
                for key, value in written.items():
                    args += (names[key], value)
                if await self._calls.run(DOCUMENTS, *args):
                    break
        return written

    async def holders(self, key: Key, *, after: str, limit: int, now: int) -> list[str]:
        args = (moment(now), beside_holder(key), after.encode(), b"%d" % limit)
        return [holder.decode() for holder in await self._calls.run(DOCUMENTS, b"holders", *args)]

    async def drop(self, keys: Sequence[Key], *, now: int) -> int:
        names = [by_holder(key) for key in keys]
        return int(await self._calls.run(DOCUMENTS, b"drop", moment(now), *names))

    async def _read(self, keys: Sequence[Key], now: int) -> dict[Key, tuple[bytes, bytes]]:
        """The live documents, each with its version."""
        names = [by_holder(key) for key in keys]
        found = await self._calls.run(DOCUMENTS, b"read", moment(now), *names)
        return {key: (one[0], one[1]) for key, one in zip(keys, found, strict=True) if one is not None}
