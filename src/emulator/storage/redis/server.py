"""Connections to the Redis that has a namespace: the server at the URL, or one node of its cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from hiredis import pack_command
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError, ResponseError

from emulator.core.errors import EngineError

TIMEOUT = 2.0
"""Seconds in which Redis must reply."""

Command = Sequence[bytes]
Reply = Any
"""bytes, int, `None` or a list of these; an exception if the command failed."""

FAILURES = (RedisError, RedisClusterException, OSError, RuntimeError)
"""Exceptions that a failing connection may raise. uvloop raises RuntimeError if it was lost just before use."""

# Nothing is sent again on its own, because a write whose reply was lost may have been done. Messages of a subscription
# are plain replies in RESP2.
_OPTIONS: Final[dict[str, Any]] = {
    "protocol": 2,
    "retry": Retry(NoBackoff(), 0),
    "socket_timeout": None,  # `Pipeline` and `RedisRelay` limit the time of all that they wait for
    "socket_connect_timeout": TIMEOUT,
}


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn failures of the connection into `EngineError`."""
    try:
        yield
    except TimeoutError as error:
        raise EngineError(f"Redis: no reply within {TIMEOUT:g} seconds") from error
    except FAILURES as error:
        raise EngineError(f"Redis: {str(error) or type(error).__name__}") from error


class Server:
    """Finds the Redis that has a namespace. Each task that waits for replies needs its own.

    `key` is any key of the namespace. Query parameters of the URL, such as `?ssl_ca_certs=/path`, go to redis-py.
    """

    def __init__(self, url: str, key: bytes) -> None:
        self._url = checked_url(url)
        self._key = key
        self._client: Redis | None = None
        self._connection: AbstractConnection | None = None
        self._cluster: RedisCluster | None = None

    async def client(self) -> Redis:
        """Raises one of `FAILURES`."""
        if self._client is None:
            self._client = await self._find()
        return self._client

    async def run(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands together and return their replies in order, an exception for each command that failed.

        A pipeline of redis-py does the same, but a call with many arguments takes it four times as long. Raises one of
        `FAILURES`; then any may have run.
        """
        pool = (await self.client()).connection_pool
        if self._connection is None:
            self._connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        else:
            await pool.ensure_connection(self._connection)  # the server may have hung up
        connection = self._connection
        await connection.send_packed_command(b"".join(map(_pack, commands)), check_health=False)
        return [await _read_reply(connection) for _ in commands]

    async def leave(self) -> None:
        """Disconnect, and look for the namespace again before the next command, because another server may have it."""
        client, self._client, self._connection = self._client, None, None
        if client is not None:
            await client.aclose()

    async def _find(self) -> Redis:
        if self._cluster is None:
            whole = await connect(self._url)
            if isinstance(whole, Redis):
                return whole
            self._cluster = whole
        try:
            await self._cluster.initialize()
            node = self._cluster.get_node_from_key(self._key.decode())
        finally:
            await self._cluster.aclose()
        assert node is not None
        pool = ConnectionPool.from_url(self._url, **_OPTIONS)
        place = {"host": node.host, "port": node.port}
        return Redis.from_pool(ConnectionPool(pool.connection_class, **{**pool.connection_kwargs, **place}))


def _pack(command: Command) -> bytes:
    packed: bytes = pack_command(tuple(command))  # type: ignore[arg-type]  # its stub allows one word only
    return packed


async def _read_reply(connection: AbstractConnection) -> Reply:
    try:
        return await connection.read_response(disable_decoding=True)
    except ResponseError as error:
        return error


async def connect(url: str, **options: Any) -> Redis | RedisCluster:
    """Return a client of all that is at a URL: a server, or a cluster."""
    options = {**_OPTIONS, **options}
    client = Redis.from_url(checked_url(url), **options)
    try:
        await client.execute_command(b"CLUSTER", b"SLOTS")  # type: ignore[no-untyped-call]
    except ResponseError:  # it is no cluster, or the ACL forbids the command
        return client
    except BaseException:
        await client.aclose()
        raise
    await client.aclose()
    return RedisCluster.from_url(checked_url(url), **options)


def location_of(url: str) -> str:
    """Return host, port and database of a valid URL, for the log."""
    parts = urlsplit(url)
    return f"Redis at {parts.hostname}:{parts.port or 6379}{parts.path.rstrip('/')}"


def database_of(url: str) -> int:
    """Return the number of the database in a valid URL."""
    return int(ConnectionPool.from_url(checked_url(url)).connection_kwargs.get("db") or 0)


def checked_url(url: str) -> str:
    """Return a URL as redis-py takes it. Raises `ValueError`, without the password, if it is invalid."""
    scheme, _, rest = url.partition("://")
    known = f"{'redis' if scheme == 'valkey' else scheme}://{rest}"
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise ValueError("the URL names no host")
        if not re.fullmatch(r"(/\d*)?", parts.path):
            raise ValueError(f"the database must be a number, not {parts.path!r}")
        ConnectionPool.from_url(known, **_OPTIONS).make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, RedisError) as error:
        reason = str(error)
        if _splits_credentials(rest):  # then the error may quote a piece of the password
            reason = "percent-encode special characters in the user and password, for example / as %2F"
        raise ValueError(f"cannot keep data in {scheme}://…: {reason}") from None
    return known


def _splits_credentials(rest: str) -> bool:
    """Whether a URL parser would cut the user and password at a special character."""
    credentials = rest.rpartition("@")[0]
    try:
        return urlsplit(f"//{credentials}@host").hostname != "host"
    except ValueError:
        return True
