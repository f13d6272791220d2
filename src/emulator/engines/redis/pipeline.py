"""Sends commands in batches: one batch at a time, and the next holds all commands that were queued meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from emulator.engines.redis.connection import Connection, Script
from emulator.engines.redis.nodes import Nodes, Reply
from emulator.errors import EngineError

MAX_BATCH = 1000
"""Commands in one batch."""


@dataclass(slots=True, eq=False)
class ScriptCall:
    """A queued command. Arguments may be appended until it is sent."""

    command: list[bytes]
    reply: asyncio.Future[Any]
    is_sent: bool = False
    prepare: Callable[[], None] | None = None
    """Completes the command just before it is sent."""
    parse: Callable[[Reply], Any] | None = None
    """Turns the reply into the result of the future. Called in the order of sending, before anything else is sent."""


class Pipeline:
    """Runs commands on one connection, in the order in which they were queued."""

    def __init__(self, nodes: Nodes, namespace: bytes) -> None:
        self._connection = Connection(nodes)
        # A cluster refuses commands of several keys, of which one does not exist, while their slot is being moved. So
        # no script sees only a part of the namespace.
        self._keys = (b"2", namespace, namespace + b":never")
        self._queue: list[ScriptCall] = []
        self._sending: asyncio.Task[None] | None = None
        self._is_open = False

    def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        """Send the queued commands, then disconnect."""
        self._is_open = False
        if self._sending is not None:
            await self._sending
        await self._connection.close()

    async def run(self, script: Script, *args: bytes) -> Reply:
        """Run a script in the namespace and return its reply."""
        return await self.enqueue(script, args).reply

    async def send(self, *command: bytes) -> Reply:
        return await self._enqueue(list(command)).reply

    def enqueue(self, script: Script, args: Iterable[bytes]) -> ScriptCall:
        return self._enqueue([b"EVALSHA", script.digest, *self._keys, *args])

    def _enqueue(self, command: list[bytes]) -> ScriptCall:
        if not self._is_open:
            raise EngineError("the engine is closed")
        call = ScriptCall(command, asyncio.get_running_loop().create_future())
        self._queue.append(call)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_queue())
        return call

    async def _send_queue(self) -> None:
        try:
            await asyncio.sleep(0)  # let operations that are ready join the first batch
            while self._queue:
                batch, self._queue = self._queue[:MAX_BATCH], self._queue[MAX_BATCH:]
                for call in batch:
                    call.is_sent = True
                    if call.prepare is not None:
                        call.prepare()
                await self._send_batch(batch)
        finally:
            self._sending = None

    async def _send_batch(self, batch: list[ScriptCall]) -> None:
        try:
            replies = await self._connection.exchange([call.command for call in batch])
        except Exception as error:  # whatever the driver raises has to reach the callers
            replies = [error] * len(batch)
        except BaseException:
            for call in batch:
                call.reply.cancel()
            raise
        for call, reply in zip(batch, replies, strict=True):
            if call.parse is not None and not isinstance(reply, Exception):
                reply = _parsed(call.parse, reply)
            call.prepare = call.parse = None  # they may refer to the call
            if call.reply.done():
                continue
            if isinstance(reply, Exception):
                call.reply.set_exception(_engine_error(reply))
                call.reply.exception()  # mark it as retrieved: the caller may be gone
            else:
                call.reply.set_result(reply)


def _parsed(parse: Callable[[Reply], Any], reply: Reply) -> Any:
    try:
        return parse(reply)
    except Exception as error:  # it has to reach the caller
        return error


def _engine_error(error: Exception) -> EngineError:
    """Return a new exception for each caller, because raising one modifies it."""
    own = EngineError(str(error) if isinstance(error, EngineError) else f"Redis: {error}")
    own.__cause__ = error
    return own
