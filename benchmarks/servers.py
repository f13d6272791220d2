"""The measured servers: `python benchmarks/servers.py NAME [DATA [CORE]]` starts one and prints its URL.

It runs on one core, 0 by default.

plain    a typed Litestar route that verifies a JWT per request and keeps the poll in memory: the reference
bare     a bare ASGI callable with the same poll in memory and a cache of verified tokens
memory   the service, data in memory
file     the service, data in the file DATA
redis    the service, data in the Redis at the URL DATA
sockets  the same as memory
sandbox  the service as a sandbox, data in memory, with a journal of DATA bytes; 0 is none
production holds  the service, data at the URL DATA, without rates; prints how long its loop was held at each SIGUSR2
uninstrumented  the same as file, without metrics, request ids, rate limits and request timeouts
echo     a protocol that answers anything with the same bytes: the limit of the load generator
websockets  the `websockets` library's server, which sends each message to all clients with `broadcast()`
"""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import jwt
import msgspec
import uvicorn
import uvloop
from common import CLIENT_ID, SECRET, argument, pin_to_core
from litestar import Litestar, Request, post
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery, JSONBody
from websockets.asyncio.server import ServerConnection, broadcast
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed

from emulator.core.environment import PRODUCTION, AnonymousLimits
from emulator.core.extensions import Extension
from emulator.core.observability.metrics import Metrics
from emulator.core.settings import Limits, Settings
from emulator.http import http_protocol
from emulator.process import run
from emulator.process.http_server import Server, listen, url_of
from emulator.process.signals import HANGUPS, SignalHandler
from emulator.realtime import gateway

_MILLION = 1_000_000
LIMITS = Limits(
    caller_rate=_MILLION,
    anonymous=replace(
        PRODUCTION.anonymous,
        address_sockets=_MILLION,
        max_unauthenticated=_MILLION,
        address_connections=_MILLION,
        address_pages=_MILLION,
        address_kib=_MILLION,
    ),
)
"""Enforced, but never reached."""
UNLIMITED = Limits(caller_rate=0, client_rate=0, anonymous=AnonymousLimits())
"""Without rates of callers and addresses."""


class Memory:
    """A poll in memory with an incremental histogram and the service's arithmetic."""

    def __init__(self) -> None:
        self.votes: dict[str, int] = {}
        self.counts: dict[int, int] = {}

    def cast(self, user: str, value: int) -> dict[str, Any]:
        previous = self.votes.get(user)
        if previous is not None:
            self.counts[previous] -= 1
        self.votes[user] = value
        self.counts[value] = self.counts.get(value, 0) + 1
        count = len(self.votes)
        total = sum(each * votes for each, votes in self.counts.items())
        squares = sum(each * each * votes for each, votes in self.counts.items())
        stats = {
            "stddev": math.sqrt(count * squares - total * total) / count,
            "mean": total / count,
            "sum": total,
            "count": count,
            "specific": [self.counts.get(index, 0) for index in range(64)],
        }
        return {"stats": stats, **stats, "vote": value}


class VoteBody(msgspec.Struct):
    value: Annotated[int, msgspec.Meta(ge=-99, le=99)]


def plain() -> Any:
    polls: dict[str, Memory] = {}

    async def verify(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        _, token = connection.headers["authorization"].split(" ")
        connection.scope["user"] = jwt.decode(token, SECRET, algorithms=["HS256"])

    @post("/v1/e/vote", status_code=200, guards=[verify])
    async def vote(
        request: Request[Any, Any, Any], data: JSONBody[VoteBody], id: FromQuery[str] = "default"
    ) -> dict[str, Any]:
        return polls.setdefault(id, Memory()).cast(request.scope["user"]["user_id"], data.value)

    return Litestar([vote], openapi_config=None, logging_config=None)


def bare() -> Any:
    poll = Memory()
    cache: dict[bytes, str] = {}
    body_of = msgspec.json.Decoder(VoteBody)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        header = dict(scope["headers"])[b"authorization"]
        user = cache.get(header)
        if user is None:
            token = header.decode().split(" ")[1]
            user = cache[header] = jwt.decode(token, SECRET, algorithms=["HS256"])["user_id"]
        body = (await receive())["body"]
        answer = msgspec.json.encode(poll.cast(user, body_of.decode(body).value))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


class Echo(asyncio.Protocol):
    """Answers whatever arrives, as long as a response to a vote."""

    _RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n" + b" " * 400

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._RESPONSE)


async def echo() -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    await announce(*server.sockets[0].getsockname())


async def announce(host: str, port: int) -> None:
    """Print the URL, and wait for SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    print(f"http://{host}:{port}", flush=True)
    await stopped.wait()


async def websockets() -> None:
    connections: set[ServerConnection] = set()

    async def repeat(connection: ServerConnection) -> None:
        connections.add(connection)
        with suppress(ConnectionClosed):
            async for message in connection:
                broadcast(connections, message)
        connections.discard(connection)

    async with serve_websockets(repeat, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        await announce(*server.sockets[0].getsockname())


async def application(app: Any) -> None:
    """Serve a reference as its authors recommend."""
    config = uvicorn.Config(
        app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False
    )
    gc.collect()
    gc.freeze()
    (listener,) = listen("127.0.0.1", 0)

    async def started() -> None:
        print(url_of("127.0.0.1", listener), flush=True)

    await Server(config, started).serve([listener])


async def service(data: str, limits: Limits = LIMITS) -> None:
    """Serve as `extcli serve --production` does."""
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    await run_service(Settings(environment=PRODUCTION, data=data, extensions=extensions, limits=limits))


async def run_service(settings: Settings) -> None:
    gateway.PING_EVERY = 3_600.0  # the clients count bytes, pings included
    (listener,) = listen("127.0.0.1", 0)

    def started() -> None:
        print(url_of("127.0.0.1", listener), flush=True)

    await run.serve(settings, [listener], started, SignalHandler(*HANGUPS), None, run.Hooks(), tls=None)


class Holds:
    """A timer that notes how long the loop did not run it; prints the longest time, in ms, at each SIGUSR2."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last, self._longest = time.thread_time_ns(), 0
        self._loop.add_signal_handler(signal.SIGUSR2, self._report)
        self._beat()

    def _beat(self) -> None:
        now = time.thread_time_ns()
        self._longest, self._last = max(self._longest, now - self._last), now
        self._loop.call_later(0.001, self._beat)

    def _report(self) -> None:
        print(self._longest / 1e6, flush=True)
        self._longest = 0


async def watched(serving: Coroutine[Any, Any, None]) -> None:
    """Serve, and report how long the event loop was held."""
    _ = Holds()
    await serving


async def uninstrumented(data: str) -> None:
    """Serve without what only watches and limits. The service has no switch for metrics and request ids."""
    for method in ("answered", "replied", "refused", "storage"):
        setattr(Metrics, method, lambda *args, **kwargs: None)
    http_protocol.request_id = lambda headers: "off"
    await service(data, replace(UNLIMITED, request_timeout=0))


async def serve(name: str, data: str) -> None:
    servers: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "plain": lambda: application(plain()),
        "bare": lambda: application(bare()),
        "memory": lambda: service("sqlite://"),
        "sockets": lambda: service("sqlite://"),
        "file": lambda: service(f"sqlite://{data}"),
        "redis": lambda: service(data),
        "sandbox": lambda: run_service(Settings(journal=int(data))),
        "sandbox file": lambda: run_service(Settings(data=f"sqlite://{data}", limits=LIMITS)),
        "production holds": lambda: watched(service(data, UNLIMITED)),
        "uninstrumented": lambda: uninstrumented(f"sqlite://{data}"),
        "echo": echo,
        "websockets": websockets,
    }
    await servers[name]()


if __name__ == "__main__":
    pin_to_core(int(argument(3, 0)))
    uvloop.run(serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""))
