"""Clients of redis-py for all that is at a data URL, a server or a cluster, and the Lua scripts of one namespace there.

Each operation is one function of a script, and so one atomic step. Operations share the calls of their script: while
one call runs, others are queued for the next.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import RedisClusterException, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.merging import FetchRows, Row
from emulator.storage.redis.keys import USER_LAST, KeyOrder, namespace_key
from emulator.storage.shapes import Terms

TIMEOUT = 2.0
"""Seconds in which Redis must reply."""

FAILURES = (RedisError, RedisClusterException, OSError, RuntimeError)
"""Exceptions that a failing connection may raise. uvloop raises RuntimeError if it was lost just before use."""

# Nothing is sent again on its own, because a write whose reply was lost may have been done. Messages of a subscription
# are plain replies in RESP2.
_OPTIONS: dict[str, Any] = {
    "protocol": 2,
    "retry": Retry(NoBackoff(), 0),
    "socket_timeout": None,  # callers limit the time of all that they wait for
    "socket_connect_timeout": TIMEOUT,
}


_SCRIPT_FOLDER = Path(__file__).with_name("lua")
MAX_OPERATIONS = 100
"""Operations in one call, which blocks all other clients of Redis."""

COOLDOWN = 0.2
"""Seconds after a timeout in which operations fail at once, or those behind a lock would wait for one each."""

Reply = Any
"""bytes, int, `None` or a list of these; an exception if the operation failed."""

_READ_ONLY_ERROR = "read only replica"
"""A part of the error of a replica, of all versions."""
_encode = msgspec.msgpack.Encoder().encode


class NoReply(EngineError):
    """Redis did not reply in time."""


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn failures of the connection into `EngineError`."""
    try:
        yield
    except (TimeoutError, RedisTimeoutError) as error:
        raise NoReply(f"Redis: no reply within {TIMEOUT:g} seconds") from error
    except FAILURES as error:
        raise EngineError(f"Redis: {str(error) or type(error).__name__}") from error


def _packable(value: object, order: KeyOrder) -> object:
    """Return an argument as a script takes it: keys as texts of this order, and terms packed, as they are stored."""
    match value:
        case str() | int() | float() | None:
            return value
        case Key():
            return order.text(value)
        case Terms():
            return _packable(_encode(value), order)
        case bytes():  # Lua's decoder of MessagePack knows text only
            return msgspec.Raw(b"\xdb" + len(value).to_bytes(4, "big") + value)
        case Iterable():
            return [_packable(each, order) for each in value]
    raise TypeError(f"scripts do not take {type(value)}")


class QueuedOperation:
    """A queued operation."""

    __slots__ = ("args", "is_sent", "order", "result")

    def __init__(self, order: KeyOrder, *args: object) -> None:
        self.order = order
        self.args: list[bytes] = []
        self.is_sent = False
        self.result: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        for each in args:
            self.add(each)

    def add(self, arg: object) -> None:
        """Add an argument, until it is sent."""
        self.args.append(_encode(_packable(arg, self.order)))

    def pack(self) -> bytes:
        self.is_sent = True
        return b"".join(self.args)

    def set_reply(self, reply: Reply) -> None:
        if self.result.done():  # cancelled
            return
        if not isinstance(reply, Exception):
            self.result.set_result(reply)
            return
        self.result.set_exception(reply if isinstance(reply, EngineError) else EngineError(f"Redis: {reply}"))
        self.result.exception()  # retrieve it: the caller may be gone


class Script:
    """The operations of `lua/common.lua` and of one more file, whose keys have this order."""

    def __init__(self, client: Client, name: str, order: KeyOrder) -> None:
        self._client = client
        self._order = order
        text = b"".join((_SCRIPT_FOLDER / f"{each}.lua").read_bytes() for each in ("common", name, "calls"))
        self.registered = client.redis.register_script(text)
        self._queue: list[QueuedOperation] = []
        self.sending: asyncio.Task[None] | None = None

    async def run(self, operation: str, *args: object) -> Reply:
        return await self.start(operation, *args).result

    async def scan(self, operation: str, *args: object) -> AsyncIterator[list[Reply]]:
        """Iterate over pages of an operation's rows. It takes a cursor, then `args`, and returns the next cursor first.

        As with `SCAN`, a row may be repeated.
        """
        cursor = b"0"
        while True:
            cursor, *rows = await self.run(operation, cursor, *args)
            yield rows
            if not int(cursor):
                return

    def page_reader(self, start: bytes, *args: object) -> FetchRows:
        """Return what reads the pages of a ballot or log, from a bound of their sorted set on."""

        async def fetch(size: int) -> tuple[list[Row], bool]:
            nonlocal start
            last, rows = await self.run("page", start, size, *args)
            start = b"(" + last
            return [tuple(row) for row in rows], bool(last)

        return fetch

    def start(self, operation: str, *args: object) -> QueuedOperation:
        if not self._client.is_open:
            raise EngineError("the engine is closed")
        queued = QueuedOperation(self._order, operation, *args)
        self._queue.append(queued)
        if self.sending is None:
            self.sending = asyncio.create_task(self._send_queue())
        return queued

    async def _send_queue(self) -> None:
        try:
            await asyncio.sleep(0)  # let operations that are ready join the first call
            while self._queue:
                operations = self._queue[:MAX_OPERATIONS]
                del self._queue[:MAX_OPERATIONS]
                replies: Sequence[Reply]
                try:
                    replies = await self._client.call_script(self.registered, [each.pack() for each in operations])
                except Exception as error:  # whatever redis-py raises has to reach the callers
                    replies = [error] * len(operations)
                for each, reply in zip(operations, replies, strict=True):
                    each.set_reply(reply)
        finally:
            self.sending = None


class Client:
    """A connection to the server or cluster that has a namespace."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self.namespace = namespace_key(namespace)
        self.is_open = False
        self.redis: Redis | RedisCluster = Redis.from_url(url)
        self._scripts: list[Script] = []
        self._fails_until = 0.0

    def script(self, name: str, order: KeyOrder = USER_LAST) -> Script:
        self._scripts.append(Script(self, name, order))
        return self._scripts[-1]

    async def open(self) -> None:
        with engine_errors():
            async with asyncio.timeout(TIMEOUT):
                self.redis = await connect(self._url)
        self.is_open = True

    async def close(self) -> None:
        """Run the queued operations, then disconnect."""
        self.is_open = False
        await asyncio.gather(*(script.sending for script in self._scripts if script.sending is not None))
        await self.redis.aclose()

    async def call_script(self, script: AsyncScript, args: Sequence[bytes]) -> list[Reply]:
        """Run a script and return its replies. After a failure, any of the operations may have run."""
        now = asyncio.get_running_loop().time
        if now() < self._fails_until:
            raise EngineError(f"Redis: no call is sent for {COOLDOWN} s after a timeout")
        # While a slot is being moved, a cluster refuses commands of several keys if one of them does not exist. So
        # no script sees only a part of the namespace.
        keys = (self.namespace, self.namespace + b":never")
        try:
            with engine_errors():
                async with asyncio.timeout(TIMEOUT):
                    replies: list[Reply] = await script(keys=keys, args=args, client=self.redis)
        except EngineError as error:
            if isinstance(error, NoReply):
                self._fails_until = now() + COOLDOWN
            await self.redis.aclose()
            raise
        if any(isinstance(each, Exception) and _READ_ONLY_ERROR in str(each) for each in replies):
            await self.redis.aclose()  # the next call looks the name up, which may be of another server now
        return replies


async def connect(url: str) -> Redis | RedisCluster:
    """Return a client for a checked URL. Query parameters of the URL, such as `?ssl_ca_certs=/path`, go to redis-py."""
    async with Redis.from_url(url, **_OPTIONS) as client:
        try:
            await client.execute_command(b"CLUSTER", b"SLOTS")  # type: ignore[no-untyped-call]
        except ResponseError:  # it is no cluster, or the ACL forbids the command
            return client  # which connects again at its next command
    return await RedisCluster.from_url(url, **_OPTIONS).initialize()


def checked_url(url: str) -> str:
    """Return a URL as redis-py takes it. Raises `ValueError`, without the password, if it is invalid."""
    scheme, _, rest = url.partition("://")
    known = "redis" if scheme == "valkey" else scheme
    advice = "percent-encode special characters in the user and password, for example / as %2F"
    for part, reason in ((rest.rpartition("@")[2], ""), (rest, advice)):  # errors of the whole may quote the password
        try:
            _check_url(f"{known}://{part}")
        except (ValueError, TypeError, RedisError) as error:
            raise ValueError(f"cannot keep data in {scheme}://…: {reason or error}") from None
    return f"{known}://{rest}"


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError("the URL names no host")
    if not re.fullmatch(r"(/\d*)?", parts.path):
        raise ValueError(f"the database must be a number, not {parts.path!r}")
    ConnectionPool.from_url(url, **_OPTIONS).make_connection()  # type: ignore[no-untyped-call]
