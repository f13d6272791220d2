"""Data on Redis 6.2 or later, alone or a cluster, or on a compatible server such as Valkey.

Each data type has its own module, and each operation is one call of a script in `lua/`. The engine of each namespace
has two connections of its own, for commands and for messages, to the server that has the namespace.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Self
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool

from emulator.core.errors import EngineError
from emulator.core.keys import Expired
from emulator.storage.engine import Engine, Medium
from emulator.storage.redis.ballots import RedisBallots, RedisLogs
from emulator.storage.redis.client import Client, NoReply, checked_url, connect, engine_errors
from emulator.storage.redis.documents import RedisDocuments
from emulator.storage.redis.dump import RedisCatalog, RedisDump
from emulator.storage.redis.keys import parse_namespace, parse_thing
from emulator.storage.redis.pools import RedisPools, RedisRosters
from emulator.storage.redis.relay import RedisRelay

_PURGE_STEP = 250
"""Things that one operation purges."""
_FORMAT = 1
"""The format in which this version keeps data, and the only one that it reads."""


class RedisEngine(RedisDump, Engine):
    """One namespace on a Redis server or cluster. `url` is checked (`checked_url`)."""

    name = "redis"
    survives_restart = True
    format = _FORMAT

    def __init__(self, url: str, *, namespace: str) -> None:
        self._speaks_tls = url.startswith("rediss:")
        parts = urlsplit(url)
        self.location = f"Redis at {parts.hostname}:{parts.port or 6379}{parts.path.rstrip('/')}"
        self._client = client = Client(url, namespace)
        super().__init__(client)
        self._namespace = client.script("namespace")
        self.documents = RedisDocuments(client)
        self.ballots = RedisBallots(client)
        self.logs = RedisLogs(client)
        self.pools = RedisPools(client)
        self.rosters = RedisRosters(client)
        self.catalog = RedisCatalog(self._namespace)
        database = ConnectionPool.from_url(url).connection_kwargs.get("db") or 0
        channel = f"{client.namespace.decode()}:relay:{database}"  # common to all databases of a server
        self._relay = self.relay = RedisRelay(self._namespace, url, channel)

    async def __aenter__(self) -> Self:
        try:
            await self._client.open()
            await self._check_server()
            await self._check_format()
            await self._relay.open()
        except BaseException as error:
            await self.__aexit__()
            if self._speaks_tls and isinstance(error, NoReply):  # a server without TLS waits for more input
                raise EngineError(f"{error}; rediss:// needs a server with TLS; without TLS, use redis://") from error
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._relay.close()
        await self._client.close()

    async def check(self) -> None:
        await self._namespace.run("check")

    async def time(self) -> int | None:
        try:
            seconds, microseconds = await self._namespace.run("time")
        except EngineError:  # the ACL may forbid it
            return None
        return int(seconds) * 1_000 + int(microseconds) // 1_000

    async def purge(self, *, now: int) -> AsyncIterator[Sequence[Expired]]:
        handled = True
        while handled:
            handled, *found = await self._namespace.run("purge", _PURGE_STEP, now)
            yield [Expired(parse_thing(name), at) for name, at in found]

    async def tidy(self) -> None:
        """Delete what is left of removed rosters, and the keys of generations before a reset.

        Redis frees all other space by itself.
        """
        while await self._namespace.run("sweep"):
            pass
        if dead := await self._namespace.run("dead"):
            async for _ in self._namespace.scan("tidy", dead):
                pass

    async def reset(self) -> None:
        await self._namespace.run("reset")

    async def size(self) -> int:
        return int(await self._namespace.run("size"))

    async def drop(self) -> None:
        # The number of the generation stays: a node that still writes to an old one must not fill a new namespace.
        await self.reset()
        await self.tidy()

    async def _check_format(self) -> None:
        """Note the format of new data. Raises `EngineError` if the data has another one."""
        # The format, then the version of extcli that noted it.
        noted = await self._namespace.run("format", f"{_FORMAT} {version('extcli')}")
        found, _, writer = noted.decode("ascii", "replace").partition(" ")
        if found != str(_FORMAT):
            raise EngineError(
                f"Redis: the data has format {found}, and this version reads format {_FORMAT}; use the version "
                f"of extcli that wrote it{f' ({writer})' if writer else ''}, or another Redis database"
            )

    async def _check_server(self) -> None:
        """Check that the server is usable, and collect warnings about its configuration."""
        await self.check()
        with suppress(EngineError):  # the ACL may forbid INFO
            lines = (await self._namespace.run("info")).split()
            info = dict(line.split(b":", 1) for line in lines if b":" in line)
            self.warnings = tuple(_server_warnings(info))


def _server_warnings(info: Mapping[bytes, bytes]) -> Iterator[str]:
    # The `volatile-…` policies evict only keys with a TTL, which hold no data of ours.
    policy = info.get(b"maxmemory_policy", b"")
    if info.get(b"maxmemory", b"0") != b"0" and policy.startswith(b"allkeys"):
        yield "Redis evicts data when its memory is full: set its maxmemory-policy to noeviction"
    if info.get(b"aof_enabled") == b"0":
        yield "Redis writes no append-only file, so a crash loses data: set its appendonly to yes"


class RedisMedium(Medium):
    """A Redis server or cluster that holds namespaces.

    `url` begins with `redis://`, `rediss://` or `valkey://`. Raises `ValueError` if it is invalid.
    """

    def __init__(self, url: str) -> None:
        self._url = checked_url(url)

    def engine(self, namespace: str) -> RedisEngine:
        return RedisEngine(self._url, namespace=namespace)

    async def namespaces(self) -> list[str]:
        """Looks at all keys of all nodes, some thousand at a time."""
        with engine_errors():
            async with await connect(self._url) as client:
                keys = [key async for key in client.scan_iter(b"{emulator|*}:*:ends", 5_000)]
        return sorted({name for key in keys if (name := parse_namespace(key)) is not None})

    async def size(self, namespace: str) -> int:
        async with self.engine(namespace) as engine:
            return await engine.size()
