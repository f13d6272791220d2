"""One connection to Redis, opened when it is needed and again after it was lost."""

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
from redis.exceptions import TimeoutError as TimedOut

from emulator.engines.redis.scripts import ALL
from emulator.errors import EngineError

TIMEOUT = 2.0
"""Seconds in which Redis has to take a connection, or to answer."""
READ_AT_ONCE = 50
"""Answers that have to come within the patience."""
COOLDOWN = 0.2
"""Seconds in which it is not tried again after it did not answer, so that those who queue do not wait in a row."""

Command = Sequence[bytes]
Answer = Any
"""As the script says it: bytes, int, None, or a list of these. An exception stands for a command that failed."""

FAILURES = (RedisError, OSError, RuntimeError)
"""What a connection may raise that fails. RuntimeError is uvloop's word for one that was lost just before its use."""


@contextmanager
def engine_errors() -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise EngineError(f"Redis: {str(error) or type(error).__name__}") from error


def pool_of(url: str) -> ConnectionPool:
    """Return a factory of connections, which pools none of them.

    They speak RESP2, where messages of a subscription are plain replies. Query parameters of the URL, such as
    `?ssl_ca_certs=/path`, go to the driver. Raises `ValueError`, without the password, if the URL is invalid.
    """
    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise ValueError("the URL names no host")
        if not re.fullmatch(r"(/\d*)?", parts.path):
            raise ValueError(f"{parts.path!r} is no number of a database")
        pool = ConnectionPool.from_url(
            f"{'redis' if scheme == 'valkey' else scheme}://{rest}",
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            socket_keepalive=True,
        )
        connection_of(pool)
    except (ValueError, TypeError, RedisError) as error:
        reason = str(error)
        if _splits_in_credentials(rest):  # then the error may quote a piece of the password
            reason = "percent-encode special characters in the user and password, for example / as %2F"
        raise ValueError(f"cannot keep data in {scheme}://…: {reason}") from None
    return pool


def _splits_in_credentials(rest: str) -> bool:
    """Whether a URL parser finds the end of the host, a port or a path before the `@`."""
    credentials = rest.rpartition("@")[0]
    try:
        return urlsplit(f"//{credentials}@host").hostname != "host"
    except ValueError:
        return True


def location_of(url: str) -> str:
    """Return host, port and database of a valid URL, for the log."""
    parts = urlsplit(url)
    return f"Redis at {parts.hostname}:{parts.port or 6379}{parts.path.rstrip('/')}"


def connection_of(pool: ConnectionPool) -> AbstractConnection:
    """A new one, not yet connected."""
    connection: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]
    return connection


class Connection:
    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._connection: AbstractConnection | None = None
        self._name: Command = ()
        """How Redis tells the connection from all others that there ever were."""
        self._given_up: Command = ()
        """The name of one that failed: what was said on it may still be on its way."""
        self._rests_until = 0.0

    async def exchange(self, commands: Sequence[Command]) -> list[Answer]:
        """Send commands in one piece and return their answers in order; when the connection fails, nobody knows which
        of them were carried out."""
        with engine_errors():
            try:
                connection = await self._usable()
                answers = await _exchanged(connection, commands)
                failed = [index for index, answer in enumerate(answers) if isinstance(answer, ResponseError)]
                unknown = [index for index in failed if isinstance(answers[index], NoScriptError)]
                if unknown:  # someone has told Redis to forget its scripts
                    await _load(connection)
                    again = await _exchanged(connection, [commands[index] for index in unknown])
                    for index, answer in zip(unknown, again, strict=True):
                        answers[index] = answer
                if any(isinstance(answers[index], ReadOnlyError) for index in failed):
                    await self.close()  # it has become a replica, and its name may stand for another server by now
                return answers
            except BaseException as error:
                if self._connection is not None:
                    self._given_up = self._name
                if isinstance(error, TimeoutError | TimedOut):
                    self._rest()
                await self.close()
                raise

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    async def _usable(self) -> AbstractConnection:
        if self._connection is not None:
            if not await _is_lost(self._connection):
                return self._connection
            await self.close()
        if asyncio.get_running_loop().time() < self._rests_until:
            raise ConnectionError("it could not be reached a moment ago")
        connection = connection_of(self._pool)
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            await self._end_former(connection)
            await _load(connection)
        except BaseException:
            self._rest()
            await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        return connection

    def _rest(self) -> None:
        self._rests_until = asyncio.get_running_loop().time() + COOLDOWN

    async def _end_former(self, connection: AbstractConnection) -> None:
        """Have Redis drop the connection that was given up, so that what it has not heard by now it never hears.

        Else a write that was refused might arrive late and undo one that was acknowledged since. Who is not allowed to
        ask for that goes without.
        """
        about = (b"CLIENT", b"INFO")
        if self._given_up:
            _, said = await _exchanged(connection, [(b"CLIENT", b"KILL", *self._given_up), about])
        else:
            (said,) = await _exchanged(connection, [about])
        self._name, self._given_up = _name_of(said), ()


def _name_of(said: Answer) -> Command:
    """By the number alone it might be another one, after Redis was started again."""
    if not isinstance(said, bytes):
        return ()
    about = dict(word.split(b"=", 1) for word in said.split() if b"=" in word)
    return (b"ID", about[b"id"], b"ADDR", about[b"addr"])


async def _is_lost(connection: AbstractConnection) -> bool:
    """Whether the other side has hung up since the last answer: nothing is to be read but that."""
    try:
        return bool(await connection.can_read())
    except FAILURES:
        return True


async def _load(connection: AbstractConnection) -> None:
    for answer in await _exchanged(connection, [(b"SCRIPT", b"LOAD", script.text) for script in ALL]):
        if isinstance(answer, ResponseError):
            raise answer


async def _exchanged(connection: AbstractConnection, commands: Sequence[Command]) -> list[Answer]:
    await connection.send_packed_command(b"".join(map(_packed, commands)), check_health=False)
    answers: list[Answer] = []
    while len(answers) < len(commands):
        async with asyncio.timeout(TIMEOUT):  # one for many, as each costs as much as reading an answer
            for _ in range(min(READ_AT_ONCE, len(commands) - len(answers))):
                answers.append(await _answer(connection))
    return answers


def _packed(command: Command) -> bytes:
    packed: bytes = pack_command(tuple(command))  # type: ignore[arg-type]  # its stub knows commands of one word only
    return packed


async def _answer(connection: AbstractConnection) -> Answer:
    try:
        return await connection.read_response(disable_decoding=True, timeout=inf)
    except ResponseError as error:
        return error
