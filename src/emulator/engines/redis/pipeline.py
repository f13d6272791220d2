"""The Lua scripts that run inside Redis, and the connection that runs them.

Each operation is one script call, and so one atomic step. The connection, to the node that has the namespace, is opened
on first use and reopened after a failure. Commands go in batches: one batch at a time, and the next holds all commands
that were queued since.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError

from emulator.engines.redis.nodes import (
    FAILURES,
    LIST_NODES,
    TIMEOUT,
    Address,
    Command,
    Nodes,
    Reply,
    engine_errors,
    exchange,
)
from emulator.errors import EngineError

_FOLDER = Path(__file__).with_name("lua")


class Script(NamedTuple):
    text: bytes
    digest: bytes


def _script(*names: str) -> Script:
    """Return `common.lua` and these files as one script; a file may use the definitions of earlier ones."""
    text = b"".join((_FOLDER / f"{name}.lua").read_bytes() for name in ("common", *names))
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


DOCUMENTS = _script("documents")
BALLOTS = _script("ballot_meta", "ballots")
ENTRIES = _script("ballot_meta", "entries")
LOGS = _script("logs")
POOLS = _script("pools")
ROSTERS = _script("rosters")
PURGE = _script("purge")
DUMP = _script("dump")
LOAD = _script("load")
CATALOG = _script("catalog")

ALL = (DOCUMENTS, BALLOTS, ENTRIES, LOGS, POOLS, ROSTERS, PURGE, DUMP, LOAD, CATALOG)


COOLDOWN = 0.2
"""Seconds after a timeout or a failed connect in which operations fail at once.

Otherwise queued operations would wait for a timeout each.
"""
MOVING_PAUSE = 0.02
"""Seconds between two attempts at commands of a slot that is being moved."""

_NOT_RUN = (NoScriptError, AskError, TryAgainError)
"""Replies to commands that did nothing and may be sent again. MOVED is an `AskError`.

ASK is not followed: until all keys of the slot have moved, a script would miss some of them on either node.
"""
_NOT_OWNER = (ReadOnlyError, ClusterDownError)
"""Replies of a node that another one may have replaced."""


class Connection:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._connection: AbstractConnection | None = None
        self._address = nodes.owner
        """The node that it is connected to."""
        self._filter: Command = ()
        """The arguments of CLIENT KILL that match this connection and no other."""
        self._abandoned: dict[Address, Command] = {}
        """The same for those that failed, by node: commands sent on them may still be on their way."""
        self._cooldown_until = self._gave_up_until = 0.0

    async def exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands together and return their replies in order. After a failure, any may have run."""
        replies = await self._try_commands(commands)
        if any(isinstance(reply, ResponseError) for reply in replies):
            await self._retry(commands, replies)
            if any(isinstance(reply, _NOT_OWNER) for reply in replies):
                await self._leave_node()
        return replies

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    async def _try_commands(self, commands: Sequence[Command]) -> list[Reply]:
        with engine_errors():
            try:
                return await exchange(await self._ready(), commands)
            except BaseException as error:
                if self._connection is not None:
                    self._abandoned[self._address] = self._filter
                if isinstance(error, TimeoutError | RedisTimeoutError):
                    self._start_cooldown()
                await self._leave_node()
                raise

    async def _retry(self, commands: Sequence[Command], replies: list[Reply]) -> None:
        """Send the commands that did not run again until they do, or `TIMEOUT` ends, and replace their replies."""
        now = asyncio.get_running_loop().time
        # Commands that waited in the queue while others gave up have waited long enough.
        until = now() + TIMEOUT if now() >= self._gave_up_until else 0
        for attempt in count():
            again = [index for index, reply in enumerate(replies) if isinstance(reply, _NOT_RUN)]
            if not again:
                return
            some: Sequence[Reply]
            try:
                if attempt:
                    await asyncio.sleep(MOVING_PAUSE)
                if attempt and now() >= until:
                    self._gave_up_until = now() + COOLDOWN
                    raise EngineError("Redis: the cluster is moving this data to another node; try again later")
                await self._prepare([replies[index] for index in again])
                some = await self._try_commands([commands[index] for index in again])
            except EngineError as error:  # the other commands have run
                some = [error] * len(again)
            for index, reply in zip(again, some, strict=True):
                replies[index] = reply

    async def _prepare(self, refusals: Sequence[Reply]) -> None:
        """Remove the cause of the refusals, if possible."""
        moved = next((reply for reply in refusals if isinstance(reply, MovedError)), None)
        if moved is not None:
            self._nodes.follow_redirection(moved)
            await self.close()
        elif self._connection is not None and any(isinstance(reply, NoScriptError) for reply in refusals):
            with engine_errors():  # Redis has lost its scripts, for example by SCRIPT FLUSH
                await _load_scripts(self._connection)

    async def _leave_node(self) -> None:
        """Disconnect from a node that is not serving. Its host name may now resolve to another server."""
        self._nodes.ask_others_next()
        await self.close()

    async def _ready(self) -> AbstractConnection:
        if self._connection is not None:
            if not await _is_lost(self._connection):
                return self._connection
            await self.close()
        if asyncio.get_running_loop().time() < self._cooldown_until:
            raise ConnectionError(f"it was unreachable less than {COOLDOWN} s ago")
        connection = None
        try:
            connection = await self._nodes.connect()
            connection.socket_timeout = None  # each `exchange` has its own, without the driver's task for each send
            self._address = self._nodes.owner
            await self._drop_abandoned_connection(connection)
            await _load_scripts(connection)
        except BaseException:
            self._start_cooldown()
            if connection is not None:
                await connection.disconnect(nowait=True)
            raise
        self._connection = connection
        return connection

    def _start_cooldown(self) -> None:
        self._cooldown_until = asyncio.get_running_loop().time() + COOLDOWN

    async def _drop_abandoned_connection(self, connection: AbstractConnection) -> None:
        """Make Redis drop the abandoned connection, unless the ACL forbids it, and learn of the other nodes.

        Otherwise a write that failed here might arrive late and undo a later, acknowledged one.
        """
        abandoned = self._abandoned.get(self._address, ())
        kill = [(b"CLIENT", b"KILL", *abandoned)] if abandoned else []
        *_, info, listing = await exchange(connection, [*kill, (b"CLIENT", b"INFO"), LIST_NODES])
        self._filter = _kill_filter(info)
        self._abandoned.pop(self._address, None)
        self._nodes.note_nodes(listing)


def _kill_filter(info: Reply) -> Command:
    """Return the arguments of `CLIENT KILL` that match id and address. After a restart, Redis may reuse an id."""
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
    for reply in await exchange(connection, [(b"SCRIPT", b"LOAD", script.text) for script in ALL]):
        if isinstance(reply, ResponseError):
            raise reply


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
        # While a slot is being moved, a cluster refuses commands of several keys if one of them does not exist. So
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
                call.reply.exception()  # retrieve its error: the caller may be gone
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
