"""The Lua scripts that run inside Redis, and the pipeline that runs them.

Each operation is one script call, and so one atomic step. Commands go in batches: one batch at a time, and the next
holds all commands that were queued since. Operations of many requests can share one call: see `Pipeline.join`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from redis.exceptions import AskError, ClusterDownError, MovedError, NoScriptError, ReadOnlyError

from emulator.core.errors import EngineError
from emulator.storage.redis.server import TIMEOUT, Command, Reply, Server, engine_errors

_FOLDER = Path(__file__).with_name("lua")


class Script(NamedTuple):
    text: bytes
    digest: bytes


def _script(name: str) -> Script:
    """Return `common.lua` and this file as one script."""
    text = b"".join((_FOLDER / f"{each}.lua").read_bytes() for each in ("common", name))
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


DOCUMENTS = _script("documents")
BALLOTS = _script("ballots")
LOGS = _script("logs")
POOLS = _script("pools")
ROSTERS = _script("rosters")
PURGE = _script("purge")
DUMP = _script("dump")
LOAD = _script("load")
CATALOG = _script("catalog")

_TEXTS = {each.digest: each.text for each in (DOCUMENTS, BALLOTS, LOGS, POOLS, ROSTERS, PURGE, DUMP, LOAD, CATALOG)}

COOLDOWN = 0.2
"""Seconds after a failure in which operations fail at once. Otherwise queued ones would wait for a timeout each."""
MAX_BATCH = 100
"""Commands in one batch."""
MAX_ROWS = 250
"""Rows in one call, which blocks all other clients of Redis."""

_NOT_RUN = (NoScriptError, MovedError)
"""Replies to commands that did nothing, and can be sent again once the script or the server is the right one."""
_ELSEWHERE = (AskError, ClusterDownError, ReadOnlyError)
"""Replies of a server that another one may have replaced. MOVED is an `AskError`."""

Row = Sequence[bytes]
Parse = Callable[[Sequence[Row], Reply], Any]
"""Turns the rows and the reply of a call into its result."""


class Call:
    """A queued command, to which operations that share it may add rows."""

    __slots__ = ("command", "parse", "rows", "waiting")

    def __init__(self, command: list[bytes], parse: Parse | None = None) -> None:
        self.command = command
        self.parse = parse
        self.rows: list[Row] = []
        """The last arguments of the script."""
        self.waiting: list[tuple[slice | None, asyncio.Future[Any]]] = []
        """The part of the result that each operation waits for. Cancelling one does not affect the others."""

    def result(self, part: slice | None = None) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((part, future))
        return future

    def whole(self) -> Command:
        return [*self.command, *chain.from_iterable(self.rows)] if self.rows else self.command

    def end(self, reply: Reply) -> None:
        if self.parse is not None and not isinstance(reply, Exception):
            try:
                reply = self.parse(self.rows, reply)
            except Exception as error:  # it has to reach the callers
                reply = error
        for part, future in self.waiting:
            if future.done():
                continue
            if isinstance(reply, Exception):
                future.set_exception(_engine_error(reply))
                future.exception()  # retrieve it: the caller may be gone
            else:
                future.set_result(reply if part is None else reply[part])


class Pipeline:
    """Runs commands one batch after the other, in the order in which they were queued."""

    def __init__(self, server: Server, namespace: bytes) -> None:
        self._server = server
        # While a slot is being moved, a cluster refuses commands of several keys if one of them does not exist. So
        # no script sees only a part of the namespace.
        self._keys = (b"2", namespace, namespace + b":never")
        self._queue: list[Call] = []
        self._joined: dict[tuple[bytes, bytes], Call] = {}
        """Queued calls that take more rows, by operation and name."""
        self._sending: asyncio.Task[None] | None = None
        self._is_open = False
        self._fails_until = 0.0

    def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        """Send the queued commands, then disconnect."""
        self._is_open = False
        if self._sending is not None:
            await self._sending
        await self._server.leave()

    async def run(self, script: Script, *args: bytes) -> Reply:
        """Run a script in the namespace and return its reply."""
        return await self.start(script, *args)

    def start(self, script: Script, *args: bytes) -> asyncio.Future[Reply]:
        return self._enqueue(script, args).result()

    async def send(self, *command: bytes) -> Reply:
        return await self._add(Call(list(command))).result()

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """Iterate over the Redis keys that match a pattern, some at a time; one may be repeated."""
        cursor = b""
        while cursor != b"0":
            cursor, keys = await self.send(b"SCAN", cursor or b"0", b"MATCH", pattern, b"COUNT", b"1000")
            yield keys

    def join(
        self, script: Script, operation: bytes, rows: Sequence[Row], *, name: bytes = b"", parse: Parse | None = None
    ) -> asyncio.Future[Sequence[Any]]:
        """Add rows to the next call of an operation on `name`, and return their part of its result."""
        call = self._joined.get((operation, name))
        if call is None or len(call.rows) >= MAX_ROWS:
            call = self._joined[operation, name] = self._enqueue(script, (operation, name), parse)
        first = len(call.rows)
        call.rows += rows
        return call.result(slice(first, first + len(rows)))

    def _enqueue(self, script: Script, args: Iterable[bytes], parse: Parse | None = None) -> Call:
        return self._add(Call([b"EVALSHA", script.digest, *self._keys, *args], parse))

    def _add(self, call: Call) -> Call:
        if not self._is_open:
            raise EngineError("the engine is closed")
        self._queue.append(call)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_queue())
        return call

    async def _send_queue(self) -> None:
        try:
            await asyncio.sleep(0)  # let operations that are ready join the first batch
            while self._queue:
                batch, self._queue = self._queue[:MAX_BATCH], self._queue[MAX_BATCH:]
                self._joined.clear()
                await self._send_batch(batch)
        finally:
            self._sending = None

    async def _send_batch(self, batch: list[Call]) -> None:
        replies: Sequence[Reply]
        try:
            replies = await self._exchange([call.whole() for call in batch])
        except Exception as error:  # whatever redis-py raises has to reach the callers
            replies = [error] * len(batch)
        except BaseException:
            for _, future in chain.from_iterable(call.waiting for call in batch):
                future.cancel()
            raise
        for call, reply in zip(batch, replies, strict=True):
            call.end(reply)

    async def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands together and return their replies in order. After a failure, any may have run."""
        now = asyncio.get_running_loop().time
        if now() < self._fails_until:
            raise EngineError(f"Redis: it was unreachable less than {COOLDOWN} s ago")
        try:
            with engine_errors():
                async with asyncio.timeout(TIMEOUT):
                    return await self._execute(commands)
        except BaseException:
            self._fails_until = now() + COOLDOWN
            await self._server.leave()
            raise

    async def _execute(self, commands: Sequence[Command]) -> list[Reply]:
        replies = await self._server.run(commands)
        again = [at for at, reply in enumerate(replies) if isinstance(reply, _NOT_RUN)]
        if any(isinstance(reply, _ELSEWHERE) for reply in replies):
            await self._server.leave()
        if again:
            some = await self._server.run([_with_text(commands[at]) for at in again])
            for at, reply in zip(again, some, strict=True):
                replies[at] = reply
        return replies


def _with_text(command: Command) -> Command:
    """Return a command that sends the whole script, in case the server does not know it; Redis then keeps it."""
    return [b"EVAL", _TEXTS[command[1]], *command[2:]] if command[0] == b"EVALSHA" else command


def _engine_error(error: Exception) -> EngineError:
    """Return a new exception for each caller, because raising one modifies it."""
    is_own = isinstance(error, EngineError)
    own = EngineError(str(error) if is_own else f"Redis: {error}")
    own.__cause__ = error.__cause__ if is_own else error
    return own
