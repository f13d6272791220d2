"""Finds the node of a Redis Cluster that owns the slot of a namespace.

A server without cluster mode sends no redirection and knows of no other nodes, so its address stays the owner.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.crc import key_slot
from redis.exceptions import MovedError

from emulator.engines.redis.driver import FAILURES, Command, Reply, exchange, new_connection

LIST_NODES: Command = (b"CLUSTER", b"SLOTS")
"""Redis refuses it outside cluster mode, or if the ACL forbids it."""
MAX_ASKED = 5
ANSWER_WITHIN = 0.5
"""Seconds in which other nodes must name the owner."""

Address = tuple[str, int]


class Nodes:
    """The nodes that one namespace knows. Its connections share this object, so each follows what another learns."""

    def __init__(self, pool: ConnectionPool, namespace: bytes) -> None:
        self._pool = pool
        self._slot = key_slot(namespace)
        self._configured: Address = (pool.connection_kwargs["host"], pool.connection_kwargs.get("port", 6379))
        """The address in the URL. It may be a name that leads to any node of the cluster."""
        self._known: set[Address] = set()
        self._is_doubted = False
        self.owner = self._configured
        self.moves = 0
        """How often the owner has changed."""

    def learn(self, listing: Reply) -> None:
        """Note the nodes in the owner's reply to `LIST_NODES`; ignore an error."""
        if isinstance(listing, list):
            self._known = {address for _, _, nodes in _nodes(listing, self.owner[0]) for address in nodes}

    def follow(self, redirection: MovedError) -> None:
        """Make the node that a MOVED reply names the owner."""
        self._set_owner((redirection.host or self.owner[0], redirection.port))

    def doubt(self) -> None:
        """Have the next connection ask other nodes for the owner first, because a replica may replace a failed one."""
        self._is_doubted = True

    async def connect(self) -> AbstractConnection:
        """Return a new connection to the owner. Raises one of `FAILURES`."""
        if self._is_doubted:
            self._is_doubted = False
            await self._ask_others()
        return await self.connect_to(self.owner)

    def primaries(self, listing: Reply) -> list[Address]:
        """Return the nodes that own slots, from a reply to `LIST_NODES`."""
        return list(dict.fromkeys(nodes[0] for _, _, nodes in _nodes(listing, self.owner[0]) if nodes))

    async def connect_to(self, address: Address) -> AbstractConnection:
        host, port = address
        connection = new_connection(self._pool, host=host, port=port)
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def _ask_others(self) -> None:
        """Ask some other nodes, all at once, and change the owner if one names another."""
        known = list(self._known - {self.owner, self._configured})
        asked = random.sample(known, min(MAX_ASKED, len(known)))
        if self.owner != self._configured:
            asked.append(self._configured)
        tasks = [asyncio.create_task(self._ask(address)) for address in asked]
        try:
            for answer in asyncio.as_completed(tasks, timeout=ANSWER_WITHIN):
                named = await answer
                if named not in (None, self.owner):
                    self._set_owner(named)
                    break
        except TimeoutError:
            pass  # the owner may answer again
        finally:
            for task in tasks:
                task.cancel()

    async def _ask(self, address: Address) -> Address | None:
        """Return the owner according to one node, or `None` if it does not answer or knows none."""
        try:
            connection = await self.connect_to(address)
            try:
                (listing,) = await exchange(connection, [LIST_NODES])
            finally:
                await connection.disconnect(nowait=True)
        except FAILURES:
            return None
        if not isinstance(listing, list):
            return None
        shards = _nodes(listing, address[0])
        return next((nodes[0] for first, last, nodes in shards if first <= self._slot <= last and nodes), None)

    def _set_owner(self, address: Address) -> None:
        if address != self.owner:
            self.moves += 1
        self.owner = address


def _nodes(shards: Reply, host: str) -> Iterator[tuple[int, int, list[Address]]]:
    """Iterate over a reply to `LIST_NODES`: first slot, last slot, and their nodes, the primary first.

    A node without an address is at `host`, which replied; one with "?" is unknown.
    """
    for first, last, *nodes in shards:
        named = [((node[0] or b"").decode() or host, node[1]) for node in nodes]
        yield first, last, [address for address in named if address[0] != "?"]
