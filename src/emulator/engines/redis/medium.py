"""Data on Redis. The engine of each namespace has connections of its own, to the node that has the namespace."""

from __future__ import annotations

from typing import Final, Self

from redis.exceptions import ResponseError

from emulator.engines.redis import RedisEngine
from emulator.engines.redis.keys import namespace_key, parse_namespace
from emulator.engines.redis.nodes import LIST_NODES, Address, Nodes, connection_factory, engine_errors, exchange
from emulator.engines.upgrades import UPGRADES, Upgrades

_PATTERN: Final = b"{emulator|*}:*:ends"
_KEYS_AT_ONCE: Final = b"5000"


class RedisMedium:
    """`url` begins with `redis://`, `rediss://` or `valkey://`. Raises `ValueError` if it is invalid."""

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
