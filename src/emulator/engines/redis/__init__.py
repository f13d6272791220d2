"""Data on Redis 6.2 or later, alone or a cluster, or on a compatible server such as Valkey.

Each data type has its own module, and each operation is one call of a script in `lua/`. The engine of each namespace
has connections of its own, to the node that has the namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, Self

from redis.exceptions import ResponseError

from emulator.engines.engine import UPGRADES, Engine, Upgrades
from emulator.engines.pools import Pools, Rosters
from emulator.engines.redis.ballots import RedisBallots
from emulator.engines.redis.catalog import RedisCatalog
from emulator.engines.redis.documents import RedisDocuments
from emulator.engines.redis.dump import Dump
from emulator.engines.redis.keys import namespace_key, parse_namespace
from emulator.engines.redis.load import Load
from emulator.engines.redis.logs import RedisLogs
from emulator.engines.redis.nodes import (
    LIST_NODES,
    Address,
    Nodes,
    connection_factory,
    engine_errors,
    exchange,
    location_of,
)
from emulator.engines.redis.pipeline import DUMP, Pipeline
from emulator.engines.redis.pools import RedisPools, RedisRosters
from emulator.engines.redis.purge import Purge
from emulator.engines.redis.relay import RedisRelay
from emulator.engines.redis.upgrade import FORMAT, upgrade
from emulator.engines.shapes import Ballots, Catalog, Documents, Logs, Relay
from emulator.errors import EngineError


class RedisEngine:
    """A Redis server or cluster that holds namespaces.

    `url` begins with `redis://`, `rediss://` or `valkey://`. Raises `ValueError` if it is invalid.
    """

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
        self.dump = Dump(self._pipeline, nodes)
        self.load = Load(self._pipeline)
        self.purge = Purge(self._pipeline, nodes, key)
        self.tidy, self.reset = self.purge.tidy, self.purge.reset
        self.documents: Documents = RedisDocuments(self._pipeline)
        self.ballots: Ballots = RedisBallots(self._pipeline)
        self.logs: Logs = RedisLogs(self._pipeline)
        self.pools: Pools = RedisPools(self._pipeline)
        self.rosters: Rosters = RedisRosters(self._pipeline)
        self.catalog: Catalog = RedisCatalog(self._pipeline)
        database = pool.connection_kwargs.get("db", 0)  # channels are common to all databases of a server
        self._relay = RedisRelay(self._pipeline, nodes, key + b":relay:%d" % database)
        self.relay: Relay = self._relay

    def exclusive_lock(self) -> AbstractContextManager[None]:
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
        await self.reset()
        await self.tidy()

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


_PATTERN: Final = b"{emulator|*}:*:ends"
_KEYS_AT_ONCE: Final = b"5000"


class RedisMedium:
    """A Redis server or cluster that holds namespaces.

    `url` begins with `redis://`, `rediss://` or `valkey://`. Raises `ValueError` if it is invalid.
    """

    def __init__(self, url: str, *, upgrades: Upgrades = UPGRADES) -> None:
        self._url, self._upgrades = url, upgrades
        self._nodes = Nodes(connection_factory(url), namespace_key(""))

    def engine(self, namespace: str) -> RedisEngine:
        return RedisEngine(self._url, namespace=namespace, upgrades=self._upgrades)

    async def namespaces(self) -> list[str]:
        """Looks at all keys of all nodes, some thousand at a time."""
        with engine_errors():
            found: set[str] = set()
            for address in await self._addresses():
                found |= await self._namespaces_on(address)
            return sorted(found)

    async def size(self, namespace: str) -> int:
        async with self.engine(namespace) as engine:
            return await engine.size()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def _addresses(self) -> list[Address]:
        """Return the nodes that have keys: the primaries of a cluster, or the one server."""
        connection = await self._nodes.connect()
        try:
            (listing,) = await exchange(connection, [LIST_NODES])
        finally:
            await connection.disconnect(nowait=True)
        return [self._nodes.owner] if isinstance(listing, ResponseError) else self._nodes.primaries(listing)

    async def _namespaces_on(self, address: Address) -> set[str]:
        found = set()
        connection = await self._nodes.connect_to(address)
        try:
            cursor = b"0"
            while True:
                (reply,) = await exchange(connection, [(b"SCAN", cursor, b"MATCH", _PATTERN, b"COUNT", _KEYS_AT_ONCE)])
                if isinstance(reply, ResponseError):
                    raise reply
                cursor, keys = reply
                found |= {name for key in keys if (name := parse_namespace(key)) is not None}
                if cursor == b"0":
                    return found
        finally:
            await connection.disconnect(nowait=True)
