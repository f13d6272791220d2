"""What is to be asked of Redis, sent together: one batch at a time, and the next holds all that came up meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from redis.asyncio.connection import ConnectionPool

from emulator.engines.redis.connection import Answer, Connection
from emulator.engines.redis.scripts import Script
from emulator.errors import EngineError

MOST_AT_ONCE = 1000
"""Commands of one batch."""


class ScriptCall:
    """One command; until it is sent, arguments may be added to it."""

    __slots__ = ("answer", "command", "is_sent")

    def __init__(self, command: list[bytes], answer: asyncio.Future[Answer]) -> None:
        self.command = command
        self.answer = answer
        self.is_sent = False


class Pipeline:
    """Commands are carried out in the order in which they were put, by one connection."""

    def __init__(self, pool: ConnectionPool, namespace: bytes) -> None:
        self._connection = Connection(pool)
        self._namespace = namespace
        self._waiting: list[ScriptCall] = []
        self._sending: asyncio.Task[None] | None = None
        self._is_open = False

    def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        """Send what was put, and hang up."""
        self._is_open = False
        if self._sending is not None:
            await self._sending
        await self._connection.close()

    async def run(self, script: Script, *args: bytes) -> Answer:
        """Run a script in the namespace and return what it says."""
        return await self.put(script, args).answer

    async def send(self, *command: bytes) -> Answer:
        return await self._put(list(command)).answer

    def put(self, script: Script, args: Iterable[bytes]) -> ScriptCall:
        return self._put([b"EVALSHA", script.digest, b"1", self._namespace, *args])

    def _put(self, command: list[bytes]) -> ScriptCall:
        if not self._is_open:
            raise EngineError("the engine is closed")
        call = ScriptCall(command, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        return call

    async def _send(self) -> None:
        try:
            await asyncio.sleep(0)  # those who are ready in this turn of the loop come along
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                for call in batch:
                    call.is_sent = True
                await self._carry_out(batch)
        finally:
            self._sending = None

    async def _carry_out(self, batch: list[ScriptCall]) -> None:
        try:
            answers = await self._connection.exchange([call.command for call in batch])
        except Exception as error:  # also what is not expected of the driver reaches those who wait for it
            answers = [error] * len(batch)
        except BaseException:
            for call in batch:
                call.answer.cancel()
            raise
        for call, answer in zip(batch, answers, strict=True):
            if call.answer.done():
                continue
            if isinstance(answer, Exception):
                call.answer.set_exception(_engine_error(answer))
                call.answer.exception()  # some have nobody who waits for them any more
            else:
                call.answer.set_result(answer)


def _engine_error(error: Exception) -> EngineError:
    """One for each who waits, as an exception is written to while it is raised."""
    own = EngineError(str(error) if isinstance(error, EngineError) else f"Redis: {error}")
    own.__cause__ = error
    return own
