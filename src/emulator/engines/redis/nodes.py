"""Finds the node of a Redis Cluster that owns the slot of a namespace, and speaks to it.

A server without cluster mode sends no redirection and knows of no other nodes, so its address stays the owner.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any
from urllib.parse import urlsplit

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import MovedError, RedisError, ResponseError

from emulator.errors import EngineError

TIMEOUT = 2.0
"""Seconds in which Redis must accept a connection, or send up to `REPLIES_PER_TIMEOUT` replies."""
REPLIES_PER_TIMEOUT = 50

Command = Sequence[bytes]
Reply = Any
"""bytes, int, `None` or a list of these; an exception if the command failed."""

FAILURES = (RedisError, OSError, RuntimeError)
"""Exceptions that a failing connection may raise. uvloop raises RuntimeError if it was lost just before use."""


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn failures of the connection into `EngineError`."""
    try:
        yield
    except FAILURES as error:
        raise EngineError(f"Redis: {str(error) or type(error).__name__}") from error


def connection_factory(url: str) -> ConnectionPool:
    """Return a factory of connections; they are not pooled.

    Connections speak RESP2, in which messages of a subscription are plain replies. Query parameters of the URL, such as
    `?ssl_ca_certs=/path`, go to the driver. Raises `ValueError`, without the password, if the URL is invalid.
    """
    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise ValueError("the URL names no host")
        if not re.fullmatch(r"(/\d*)?", parts.path):
            raise ValueError(f"the database must be a number, not {parts.path!r}")
        pool = ConnectionPool.from_url(
            f"{'redis' if scheme == 'valkey' else scheme}://{rest}",
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            socket_keepalive=True,
        )
        new_connection(pool)
    except (ValueError, TypeError, RedisError) as error:
        reason = str(error)
        if _splits_credentials(rest):  # then the error may quote a piece of the password
            reason = "percent-encode special characters in the user and password, for example / as %2F"
        raise ValueError(f"cannot keep data in {scheme}://…: {reason}") from None
    return pool


def _splits_credentials(rest: str) -> bool:
    """Whether a URL parser would cut the user and password at a special character."""
    credentials = rest.rpartition("@")[0]
    try:
        return urlsplit(f"//{credentials}@host").hostname != "host"
    except ValueError:
        return True


def location_of(url: str) -> str:
    """Return host, port and database of a valid URL, for the log."""
    parts = urlsplit(url)
    return f"Redis at {parts.hostname}:{parts.port or 6379}{parts.path.rstrip('/')}"


def new_connection(pool: ConnectionPool, **place: Any) -> AbstractConnection:
    """Return a connection that is not connected yet. `place` is the host and port, if not the URL's."""
    connection: AbstractConnection = pool.connection_class(**{**pool.connection_kwargs, **place})
    return connection


async def exchange(connection: AbstractConnection, commands: Sequence[Command]) -> list[Reply]:
    """Send commands together and return their replies in order, an exception for each command that failed."""
    async with asyncio.timeout(TIMEOUT):
        await connection.send_packed_command(b"".join(map(_pack, commands)), check_health=False)
    replies: list[Reply] = []
    while len(replies) < len(commands):
        async with asyncio.timeout(TIMEOUT):  # one for many replies, because it costs as much as reading one
            for _ in range(min(REPLIES_PER_TIMEOUT, len(commands) - len(replies))):
                replies.append(await _read_reply(connection))
    return replies


def _pack(command: Command) -> bytes:
    packed: bytes = pack_command(tuple(command))  # type: ignore[arg-type]  # its stub allows one word only
    return packed


async def _read_reply(connection: AbstractConnection) -> Reply:
    try:
        return await connection.read_response(disable_decoding=True, timeout=inf)
    except ResponseError as error:
        return error


LIST_NODES: Command = (b"CLUSTER", b"SLOTS")
"""Redis refuses it outside cluster mode, or if the ACL forbids it."""
MAX_ASKED = 5
ANSWER_WITHIN = 0.5
"""Seconds in which other nodes must name the owner."""

Address = tuple[str, int]


class Nodes:
    """The known nodes of the cluster.

    All connections of a namespace share this object, so each learns from the others.
    """

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

    def note_nodes(self, listing: Reply) -> None:
        """Note the nodes in the owner's reply to `LIST_NODES`; ignore an error."""
        if isinstance(listing, list):
            self._known = {address for _, _, nodes in _nodes(listing, self.owner[0]) for address in nodes}

    def follow_redirection(self, redirection: MovedError) -> None:
        """Make the node that a MOVED reply names the owner."""
        self._set_owner((redirection.host or self.owner[0], redirection.port))

    def ask_others_next(self) -> None:
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
        tasks = [asyncio.create_task(self._ask_for_owner(address)) for address in asked]
        try:
            for answer in asyncio.as_completed(tasks, timeout=ANSWER_WITHIN):
                named = await answer
                if named not in (None, self.owner):
                    self._set_owner(named)
                    break
        except TimeoutError:
            pass  # the owner may reply again
        finally:
            for task in tasks:
                task.cancel()

    async def _ask_for_owner(self, address: Address) -> Address | None:
        """Return the owner according to one node, or `None` if it does not reply or knows none."""
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
