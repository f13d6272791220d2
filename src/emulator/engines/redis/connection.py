"""One connection to Redis, opened on first use and reopened after a failure."""

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
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from emulator.engines.redis.scripts import ALL
from emulator.errors import EngineError

TIMEOUT = 2.0
"""Seconds in which Redis must accept a connection, or send up to `REPLIES_PER_TIMEOUT` replies."""
REPLIES_PER_TIMEOUT = 50
COOLDOWN = 0.2
"""Seconds after a timeout or a failed connect in which operations fail at once. Otherwise queued operations would wait
for a timeout each."""

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


def new_connection(pool: ConnectionPool) -> AbstractConnection:
    """Return a connection that is not connected yet."""
    connection: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]
    return connection


class Connection:
    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._connection: AbstractConnection | None = None
        self._filter: Command = ()
        """The arguments of CLIENT KILL that match this connection and no other."""
        self._abandoned: Command = ()
        """The same for one that failed: commands sent on it may still be on their way."""
        self._cooldown_until = 0.0

    async def exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands together and return their replies in order. After a failure, any may have run."""
        with engine_errors():
            try:
                connection = await self._ready()
                replies = await _exchange(connection, commands)
                failed = [index for index, reply in enumerate(replies) if isinstance(reply, ResponseError)]
                unknown = [index for index in failed if isinstance(replies[index], NoScriptError)]
                if unknown:  # Redis has lost its scripts, for example by SCRIPT FLUSH
                    await _load_scripts(connection)
                    again = await _exchange(connection, [commands[index] for index in unknown])
                    for index, reply in zip(unknown, again, strict=True):
                        replies[index] = reply
                if any(isinstance(replies[index], ReadOnlyError) for index in failed):
                    await self.close()  # it became a replica, and its name may now point to another server
                return replies
            except BaseException as error:
                if self._connection is not None:
                    self._abandoned = self._filter
                if isinstance(error, TimeoutError | RedisTimeoutError):
                    self._start_cooldown()
                await self.close()
                raise

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    async def _ready(self) -> AbstractConnection:
        if self._connection is not None:
            if not await _is_lost(self._connection):
                return self._connection
            await self.close()
        if asyncio.get_running_loop().time() < self._cooldown_until:
            raise ConnectionError(f"it was unreachable less than {COOLDOWN} s ago")
        connection = new_connection(self._pool)
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            await self._kill_abandoned(connection)
            await _load_scripts(connection)
        except BaseException:
            self._start_cooldown()
            await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        return connection

    def _start_cooldown(self) -> None:
        self._cooldown_until = asyncio.get_running_loop().time() + COOLDOWN

    async def _kill_abandoned(self, connection: AbstractConnection) -> None:
        """Make Redis drop the abandoned connection, unless the ACL forbids it.

        Otherwise a write that failed here might arrive late and undo a later, acknowledged one.
        """
        info = (b"CLIENT", b"INFO")
        if self._abandoned:
            _, reply = await _exchange(connection, [(b"CLIENT", b"KILL", *self._abandoned), info])
        else:
            (reply,) = await _exchange(connection, [info])
        self._filter, self._abandoned = _kill_filter(reply), ()


def _kill_filter(info: Reply) -> Command:
    """Match id and address: after a restart, Redis may use the same id again."""
    if not isinstance(info, bytes):
        return ()
    fields = dict(word.split(b"=", 1) for word in info.split() if b"=" in word)
    return (b"ID", fields[b"id"], b"ADDR", fields[b"addr"])


async def _is_lost(connection: AbstractConnection) -> bool:
    """Whether the server has hung up. Between two exchanges, there is nothing else to read."""
    try:
        return bool(await connection.can_read())
    except FAILURES:
        return True


async def _load_scripts(connection: AbstractConnection) -> None:
    for reply in await _exchange(connection, [(b"SCRIPT", b"LOAD", script.text) for script in ALL]):
        if isinstance(reply, ResponseError):
            raise reply


async def _exchange(connection: AbstractConnection, commands: Sequence[Command]) -> list[Reply]:
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
