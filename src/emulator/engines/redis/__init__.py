"""The engine on Redis 6.2 or later, alone or a cluster, or on a compatible server such as Valkey.

Each shape has its own module, and each operation is one call of a script in `lua/`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Self

from emulator.engines.base import Ballots, Documents, Expired, Logs, Relay
from emulator.engines.catalog import Catalog
from emulator.engines.engine import Engine
from emulator.engines.pools import Pools, Rosters
from emulator.engines.records import Record
from emulator.engines.redis.ballots import RedisBallots
from emulator.engines.redis.catalog import RedisCatalog
from emulator.engines.redis.connection import DUMP
from emulator.engines.redis.documents import RedisDocuments
from emulator.engines.redis.keys import namespace_key
from emulator.engines.redis.logs import RedisLogs
from emulator.engines.redis.nodes import Nodes, connection_factory, location_of
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.redis.pools import RedisPools, RedisRosters
from emulator.engines.redis.purge import Purge
from emulator.engines.redis.records.dump import Dump
from emulator.engines.redis.records.load import Load
from emulator.engines.redis.relay import RedisRelay
from emulator.engines.redis.upgrade import FORMAT, upgrade
from emulator.engines.upgrades import UPGRADES, Upgrades
from emulator.errors import EngineError


class RedisEngine:
    """`url` begins with `redis://`, `rediss://` or `valkey://`. Raises `ValueError` if it is invalid."""

    name = "redis"
    survives_restart = True
    is_shared = True
    can_copy = False
    format = FORMAT

    def __init__(self, url: str, *, namespace: str, upgrades: Upgrades = UPGRADES) -> None:
        self.warnings: Sequence[str] = ()
        self._upgrades = upgrades
        self._speaks_tls = url.startswith("rediss:")
        self._namespace = key = namespace_key(namespace)
        pool = connection_factory(url)
        self.location = location_of(url)
        nodes = Nodes(pool, key)
        self._pipeline = Pipeline(nodes, key)
        self._dump = Dump(self._pipeline, nodes)
        self._load = Load(self._pipeline)
        self._purge = Purge(self._pipeline, nodes, key)
        self.documents: Documents = RedisDocuments(self._pipeline)
        self.ballots: Ballots = RedisBallots(self._pipeline)
        self.logs: Logs = RedisLogs(self._pipeline)
        self.pools: Pools = RedisPools(self._pipeline)
        self.rosters: Rosters = RedisRosters(self._pipeline)
        self.catalog: Catalog = RedisCatalog(self._pipeline)
        database = pool.connection_kwargs.get("db", 0)  # channels are common to all databases of a server
        self._relay = RedisRelay(self._pipeline, nodes, key + b":relay:%d" % database)
        self.relay: Relay = self._relay

    def claimed(self) -> AbstractContextManager[None]:
        return nullcontext()  # several services may share one Redis

    async def __aenter__(self) -> Self:
        self._pipeline.open()
        try:
            await self._inspect()
            await upgrade(self._pipeline, self._namespace, self._upgrades)
            await self._relay.open()
        except EngineError as error:
            await self._pipeline.close()
            if self._speaks_tls and "connecting" in str(error):  # a server without TLS waits for more input
                raise EngineError(f"{error}; rediss:// needs a server with TLS; use redis:// without") from error
            raise
        except BaseException:
            await self._pipeline.close()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._relay.close()
        await self._pipeline.close()

    async def check(self) -> None:
        # A write, which a replica and a full server refuse, and of two keys, which a node refuses while it moves their
        # slot; but of nothing, so it leaves no key.
        await self._pipeline.send(b"COPY", self._namespace + b":never", self._namespace + b":nothing")

    async def time(self) -> int | None:
        try:
            seconds, microseconds = await self._pipeline.send(b"TIME")
        except EngineError:  # the ACL may forbid it
            return None
        return int(seconds) * 1_000 + int(microseconds) // 1_000

    async def purge(self, *, now: int) -> list[Expired]:
        return await self._purge(now)

    async def tidy(self) -> None:
        await self._purge.tidy()

    async def reset(self) -> None:
        await self._purge.reset()

    def dump(self, *, now: int) -> AsyncIterator[Sequence[Record]]:
        return self._dump(now)

    async def load(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        await self._load(pages, replace=replace)

    async def copy(self, source: Engine, *, now: int) -> None:
        raise EngineError("Redis cannot copy a namespace while others write to it")

    async def set_aside(self) -> None:
        raise EngineError("Redis cannot keep a namespace aside")

    async def take_back(self) -> None:
        raise EngineError("Redis cannot keep a namespace aside")

    async def drop_aside(self) -> None:
        pass

    async def size(self) -> int:
        return int(await self._pipeline.run(DUMP, b"size"))

    async def drop(self) -> None:
        # The number of the generation stays: a node that still writes to an old one must not fill a new namespace.
        await self._purge.reset()
        await self._purge.tidy()

    async def _inspect(self) -> None:
        """Check that the server is usable, and collect warnings about its configuration."""
        await self.check()
        with suppress(EngineError):  # the ACL may forbid INFO
            replies = [await self._pipeline.send(b"INFO", section) for section in (b"memory", b"persistence")]
            info = dict(line.split(b":", 1) for line in b"\n".join(replies).split() if b":" in line)
            self.warnings = tuple(_warnings(info))


def _warnings(info: Mapping[bytes, bytes]) -> Iterator[str]:
    # The `volatile-…` policies evict only keys with a TTL, which hold no data of ours.
    if info.get(b"maxmemory", b"0") != b"0" and info.get(b"maxmemory_policy", b"").startswith(b"allkeys"):
        yield "Redis evicts data when its memory is full: set its maxmemory-policy to noeviction"
    if info.get(b"aof_enabled") == b"0":
        yield "Redis writes no append-only file, so a crash loses data: set its appendonly to yes"
