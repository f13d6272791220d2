"""Messages between processes, by Redis's publish and subscribe, on one channel for each namespace.

From Redis 7 on it is a sharded channel, whose messages a cluster does not copy to all nodes; the node that owns the
namespace's slot serves it. Each publication and subscription tries that first and falls back, so that all processes
agree even after another server takes over.

Messages that are published while the subscription is lost are not delivered.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from math import inf

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import MovedError, ResponseError

from emulator.engines.redis.keys import parse_user_last, user_last
from emulator.engines.redis.nodes import Nodes, engine_errors
from emulator.engines.redis.pipeline import Pipeline
from emulator.engines.shapes import Key
from emulator.errors import EngineError

RETRY_AFTER = 0.3
"""Seconds between two attempts to subscribe."""
MAX_REDIRECTIONS = 5
PING_AFTER = 5.0
"""Seconds without a message after which the connection is pinged."""
_log = logging.getLogger("emulator.engines")


class RedisRelay:
    is_local = False

    def __init__(self, pipeline: Pipeline, nodes: Nodes, channel: bytes) -> None:
        self._pipeline = pipeline
        self._nodes = nodes
        self._channel = channel
        self._sender = uuid.uuid4().bytes
        self._listeners: list[Callable[[Key, bytes], None]] = []
        self._task: asyncio.Task[None] | None = None

    def listen(self, deliver: Callable[[Key, bytes], None]) -> None:
        self._listeners.append(deliver)

    def ignore(self, deliver: Callable[[Key, bytes], None]) -> None:
        self._listeners.remove(deliver)

    async def publish(self, topic: Key, message: bytes) -> None:
        name = user_last(topic)
        packet = b"".join((self._sender, len(name).to_bytes(4, "big"), name, message))
        try:
            await self._pipeline.send(b"SPUBLISH", self._channel, packet)
        except EngineError as error:
            if not _is_unknown_command(error.__cause__):
                raise
            await self._pipeline.send(b"PUBLISH", self._channel, packet)
        self._deliver(topic, message)

    async def open(self) -> None:
        with engine_errors():
            connection = await self._connect()
        self._task = asyncio.create_task(self._receive(connection))

    async def close(self) -> None:
        if self._task is not None:
            while not self._task.done():
                self._task.cancel()  # again, because `asyncio.wait_for` before Python 3.12 may swallow a cancellation
                await asyncio.wait([self._task], timeout=0.1)
            self._task = None

    def _deliver(self, topic: Key, message: bytes) -> None:
        for deliver in self._listeners:
            deliver(topic, message)

    async def _connect(self) -> AbstractConnection:
        for _ in range(MAX_REDIRECTIONS):
            connection = await self._nodes.connect()
            try:
                await self._subscribe(connection)
                return connection
            except MovedError as moved:
                await connection.disconnect(nowait=True)
                self._nodes.follow_redirection(moved)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
        raise ConnectionError(f"the nodes of the cluster redirected {MAX_REDIRECTIONS} times")

    async def _subscribe(self, connection: AbstractConnection) -> None:
        try:
            await self._send(connection, b"SSUBSCRIBE")
        except ResponseError as error:
            if not _is_unknown_command(error):
                raise
            await self._send(connection, b"SUBSCRIBE")

    async def _send(self, connection: AbstractConnection, command: bytes) -> None:
        await connection.send_packed_command(connection.pack_command(command, self._channel))
        await connection.read_response(disable_decoding=True)

    async def _receive(self, connection: AbstractConnection | None) -> None:
        is_failing = False
        while True:
            try:
                connection = connection or await self._connect()
                if is_failing:
                    _log.info("receiving messages from other processes again")
                is_failing = False
                await self._receive_from(connection)
            except Exception as error:  # after any error it must try again, or messages would be lost from then on
                if not is_failing:
                    reason = str(error) or "Redis does not answer"
                    _log.warning("cannot receive messages from other processes: %s", reason)
                is_failing = True
                self._nodes.ask_others_next()
            finally:
                if connection is not None:
                    await connection.disconnect(nowait=True)
            connection = None
            if is_failing:
                await asyncio.sleep(RETRY_AFTER)

    async def _receive_from(self, connection: AbstractConnection) -> None:
        """Deliver messages until the node ends the subscription because another has become the channel's owner."""
        is_pinged = False
        while True:
            try:
                async with asyncio.timeout(PING_AFTER):
                    reply = await connection.read_response(
                        disable_decoding=True, timeout=inf, disconnect_on_error=False
                    )
            except TimeoutError:
                if is_pinged:
                    raise
                await connection.send_packed_command(connection.pack_command(b"PING"), check_health=False)
                is_pinged = True
                continue
            is_pinged = False
            kind = reply[0] if isinstance(reply, list) else None
            if kind in (b"smessage", b"message"):
                self._parse(reply[2])
            elif kind == b"sunsubscribe":
                return

    def _parse(self, packet: bytes) -> None:
        if packet[:16] == self._sender:
            return
        start = 20 + int.from_bytes(packet[16:20], "big")
        try:
            topic = parse_user_last(packet[20:start])
        except (ValueError, TypeError):
            _log.warning("ignored a message of another program on the Redis channel %r", self._channel)
        else:
            self._deliver(topic, packet[start:])


def _is_unknown_command(error: BaseException | None) -> bool:
    """Whether the server lacks the command, as those before version 7 lack sharded channels."""
    return isinstance(error, ResponseError) and str(error).startswith("unknown command")
