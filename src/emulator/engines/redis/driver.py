"""The use of the driver: connections from a URL, and exchanges of commands for replies."""

from __future__ import annotations

import asyncio
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
from redis.exceptions import RedisError, ResponseError

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
