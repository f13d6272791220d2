"""Clients of redis-py for all that is at a data URL: a server, or a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from emulator.core.errors import EngineError

TIMEOUT = 2.0
"""Seconds in which Redis must reply."""

FAILURES = (RedisError, RedisClusterException, OSError, RuntimeError)
"""Exceptions that a failing connection may raise. uvloop raises RuntimeError if it was lost just before use."""

# Nothing is sent again on its own, because a write whose reply was lost may have been done. Messages of a subscription
# are plain replies in RESP2.
_OPTIONS: Final[dict[str, Any]] = {
    "protocol": 2,
    "retry": Retry(NoBackoff(), 0),
    "socket_timeout": None,  # callers limit the time of all that they wait for
    "socket_connect_timeout": TIMEOUT,
}


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


async def connect(url: str) -> Redis | RedisCluster:
    """Return a client for a checked URL. Query parameters of the URL, such as `?ssl_ca_certs=/path`, go to redis-py."""
    client = Redis.from_url(url, **_OPTIONS)
    try:
        await client.execute_command(b"CLUSTER", b"SLOTS")  # type: ignore[no-untyped-call]
    except ResponseError:  # it is no cluster, or the ACL forbids the command
        return client
    except BaseException:
        await client.aclose()
        raise
    await client.aclose()
    return await RedisCluster.from_url(url, **_OPTIONS).initialize()


def checked_url(url: str) -> str:
    """Return a URL as redis-py takes it. Raises `ValueError`, without the password, if it is invalid."""
    scheme, _, rest = url.partition("://")
    known = "redis" if scheme == "valkey" else scheme
    advice = "percent-encode special characters in the user and password, for example / as %2F"
    for part, reason in ((rest.rpartition("@")[2], ""), (rest, advice)):  # errors of the whole may quote the password
        try:
            _check(f"{known}://{part}")
        except (ValueError, TypeError, RedisError) as error:
            raise ValueError(f"cannot keep data in {scheme}://…: {reason or error}") from None
    return f"{known}://{rest}"


def _check(url: str) -> None:
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError("the URL names no host")
    if not re.fullmatch(r"(/\d*)?", parts.path):
        raise ValueError(f"the database must be a number, not {parts.path!r}")
    ConnectionPool.from_url(url, **_OPTIONS).make_connection()  # type: ignore[no-untyped-call]
