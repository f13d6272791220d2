"""The engine on one node of Redis from 6.2 on, or of what speaks its language and runs its scripts, such as Valkey.

It puts the parts together; each shape has its own module, and each operation is one call of a script in `lua/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

from emulator.engines.base import Ballots, Documents, Expired, Logs, Relay
from emulator.engines.pools import Pools, Rosters
from emulator.engines.redis.ballots import RedisBallots
from emulator.engines.redis.connection import location_of, pool_of
from emulator.engines.redis.documents import RedisDocuments
from emulator.engines.redis.keys import namespace_key
from emulator.engines.redis.logs import RedisLogs
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.pools import RedisPools
from emulator.engines.redis.purge import Purge
from emulator.engines.redis.relay import RedisRelay
from emulator.engines.redis.rosters import RedisRosters
from emulator.errors import EngineError


class RedisEngine:
    """`url` is one that the driver knows: `redis://` or `rediss://`. What it cannot read raises ValueError."""

    name = "redis"
    survives_restart = True
    is_shared = True

    def __init__(self, url: str, *, namespace: str) -> None:
        self.warnings: Sequence[str] = ()
        self._speaks_tls = url.startswith("rediss:")
        self._tag = tag = namespace_key(namespace)
        pool = pool_of(url)
        self.location = location_of(url)
        self._pipeline = Pipeline(pool, tag)
        self._purge = Purge(self._pipeline, tag)
        self.documents: Documents = RedisDocuments(self._pipeline)
        self.ballots: Ballots = RedisBallots(self._pipeline)
        self.logs: Logs = RedisLogs(self._pipeline)
        self.pools: Pools = RedisPools(self._pipeline)
        self.rosters: Rosters = RedisRosters(self._pipeline)
        self._relay = RedisRelay(self._pipeline, pool, tag)
        self.relay: Relay = self._relay

    async def __aenter__(self) -> Self:
        self._pipeline.open()
        try:
            await self._look_around()
            await self._relay.open()
        except EngineError as error:
            await self._pipeline.close()
            if self._speaks_tls and "connecting" in str(error):  # a server without TLS waits for what it can read
                raise EngineError(f"{error}; rediss:// speaks TLS: does this server?") from error
            raise
        except BaseException:
            await self._pipeline.close()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._relay.close()
        await self._pipeline.close()

    async def check(self) -> None:
        # A write, as a replica takes none, nor a full server one that may need room; of nothing, so it leaves no trace.
        await self._pipeline.send(b"SETRANGE", self._tag + b":nothing", b"0", b"")

    async def purge(self, *, now: int) -> list[Expired]:
        return await self._purge(now)

    async def tidy(self) -> None:
        await self._purge.tidy()

    async def reset(self) -> None:
        await self._purge.reset()

    async def _look_around(self) -> None:
        """Find out whether the server can be used, and whether it might forget what it was told to keep."""
        await self.check()
        with suppress(EngineError):  # some are not allowed to ask
            said = [await self._pipeline.send(b"INFO", section) for section in (b"memory", b"persistence")]
            self.warnings = tuple(
                _warnings(dict(line.split(b":", 1) for line in b"\n".join(said).split() if b":" in line))
            )


def _warnings(about: Mapping[bytes, bytes]) -> Iterator[str]:
    """What `INFO` gives reason for. Policies for keys with an end forget nothing that is ours to keep."""
    if about.get(b"maxmemory", b"0") != b"0" and about.get(b"maxmemory_policy", b"").startswith(b"allkeys"):
        yield "Redis forgets data when its memory is full: set its maxmemory-policy to noeviction"
    if about.get(b"aof_enabled") == b"0":
        yield "Redis keeps no log of what it is told, so data are gone when it dies: set its appendonly to yes"
