"""Messages between processes, by Redis's own publish and subscribe on one channel for each namespace.

From Redis 7 on it is a channel of the namespace's slot, which a cluster does not take to all of its nodes. Nobody
remembers whether the server has such channels: each message and each subscription finds out by asking. So all processes
agree, also after another server has taken its place.

What is said while the subscription is lost is not heard, as for anyone who listens later.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from math import inf

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ResponseError

from emulator.engines.base import Key
from emulator.engines.redis.connection import connection_of, engine_errors
from emulator.engines.redis.keys import by_user, of_user
from emulator.engines.redis.pipeline import Pipeline
from emulator.errors import EngineError

RETRY_AFTER = 0.3
"""Seconds between two attempts to subscribe."""
SILENCE = 5.0
"""Seconds without a message after which the connection is asked whether it still is one."""
_log = logging.getLogger("emulator.engines")


class RedisRelay:
    is_local = False

    def __init__(self, pipeline: Pipeline, pool: ConnectionPool, namespace: bytes) -> None:
        self._pipeline = pipeline
        self._pool = pool
        database = pool.connection_kwargs.get("db", 0)
        self._channel = namespace + b":relay:%d" % database  # as to publish and subscribe all databases are one
        self._sender = uuid.uuid4().bytes
        self._deliver: list[Callable[[Key, bytes], None]] = []
        self._hearing: asyncio.Task[None] | None = None

    def listen(self, deliver: Callable[[Key, bytes], None]) -> None:
        self._deliver.append(deliver)

    async def publish(self, topic: Key, message: bytes) -> None:
        name = by_user(topic)
        said = b"".join((self._sender, len(name).to_bytes(4, "big"), name, message))
        try:
            await self._pipeline.send(b"SPUBLISH", self._channel, said)
        except EngineError as error:
            if not _is_of_later(error.__cause__):
                raise
            await self._pipeline.send(b"PUBLISH", self._channel, said)
        self._hand_out(topic, message)

    async def open(self) -> None:
        with engine_errors():
            connection = await self._subscribed()
        self._hearing = asyncio.create_task(self._hear(connection))

    async def close(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
            with suppress(asyncio.CancelledError):
                await self._hearing
            self._hearing = None

    def _hand_out(self, topic: Key, message: bytes) -> None:
        for deliver in self._deliver:
            deliver(topic, message)

    async def _subscribed(self) -> AbstractConnection:
        connection = connection_of(self._pool)
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            try:
                await self._subscribe(connection, b"SSUBSCRIBE")
            except ResponseError as error:
                if not _is_of_later(error):
                    raise
                await self._subscribe(connection, b"SUBSCRIBE")
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def _subscribe(self, connection: AbstractConnection, word: bytes) -> None:
        await connection.send_packed_command(connection.pack_command(word, self._channel))
        await connection.read_response(disable_decoding=True)

    async def _hear(self, connection: AbstractConnection | None) -> None:
        is_failing = False
        while True:
            try:
                connection = connection or await self._subscribed()
                if is_failing:
                    _log.info("receiving messages from other processes again")
                is_failing = False
                await self._hear_from(connection)
            except Exception as error:  # whatever it is: who stopped trying would be deaf for good
                if not is_failing:
                    _log.warning(
                        "cannot receive messages from other processes: %s", str(error) or "Redis does not answer"
                    )
                is_failing = True
            finally:
                if connection is not None:
                    await connection.disconnect(nowait=True)
            connection = None
            await asyncio.sleep(RETRY_AFTER)

    async def _hear_from(self, connection: AbstractConnection) -> None:
        is_asked = False
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    said = await connection.read_response(disable_decoding=True, timeout=inf, disconnect_on_error=False)
            except TimeoutError:
                if is_asked:
                    raise
                await connection.send_packed_command(connection.pack_command(b"PING"), check_health=False)
                is_asked = True
                continue
            is_asked = False
            if isinstance(said, list) and said[0] in (b"smessage", b"message"):
                self._read(said[2])

    def _read(self, said: bytes) -> None:
        if said[:16] == self._sender:
            return
        start = 20 + int.from_bytes(said[16:20], "big")
        try:
            topic = of_user(said[20:start])
        except (ValueError, TypeError):
            _log.warning("somebody else has published on the channel %r", self._channel)
        else:
            self._hand_out(topic, said[start:])


def _is_of_later(error: BaseException | None) -> bool:
    """Whether the server said that it does not have such a command, as those before 7 do."""
    return isinstance(error, ResponseError) and str(error).startswith("unknown command")
