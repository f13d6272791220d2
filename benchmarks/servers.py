"""The measured servers: `python benchmarks/servers.py NAME [DATA [CORE]]` starts one and prints its URL.

It runs on one core, 0 by default.

plain    a typed Litestar route that verifies a JWT per request and keeps the poll in memory: the reference
bare     a bare ASGI callable with the same poll in memory and a cache of verified tokens
memory   the service, data in memory
file     the service, data in the file DATA
redis    the service, data in the Redis at the URL DATA
sockets  the same as memory
websockets  the `websockets` library's server, which sends each message to all clients with `broadcast()`
"""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Annotated, Any

import jwt
import msgspec
import uvicorn
import uvloop
from common import argument, pin_to_core
from litestar import Litestar, Request, post
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery, JSONBody
from websockets.asyncio.server import ServerConnection, broadcast
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed

from emulator.app import open_app
from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Limits, Settings
from emulator.realtime import gateway
from emulator.server.run import Server, config_of, listen, url_of

SECRET = b"the secret of the benchmarks, 32+ bytes"
CLIENT_ID = "bench"


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


async def websockets() -> None:
    connections: set[ServerConnection] = set()

    async def repeat(connection: ServerConnection) -> None:
        connections.add(connection)
        with suppress(ConnectionClosed):
            async for message in connection:
                broadcast(connections, message)
        connections.discard(connection)

    async with serve_websockets(repeat, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        host, port = server.sockets[0].getsockname()
        print(f"http://{host}:{port}", flush=True)
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await stopped.wait()


class Echo(asyncio.Protocol):
    """Answers each read with the same bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


async def echo() -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    print(f"http://{host}:{port}", flush=True)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


async def serve(name: str, file: str | None) -> None:
    if hasattr(signal, "SIGUSR1"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, gc.collect)
    if name in ("websockets", "echo"):
        await {"websockets": websockets, "echo": echo}[name]()
        return
    async with AsyncExitStack() as stack:
        if name in ("plain", "bare"):
            app = {"plain": plain, "bare": bare}[name]()
            config = uvicorn.Config(
                app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False
            )
        else:
            gateway.PING_EVERY = 3_600.0  # the clients count bytes, pings included
            data = {"file": f"sqlite://{file}", "redis": str(file)}.get(name, "sqlite://")
            extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
            million = 1_000_000  # enforced, but never reached
            anonymous = replace(
                PRODUCTION.anonymous,
                address_sockets=million,
                max_unauthenticated=million,
                address_pages=million,
                address_kib=million,
            )
            limits = Limits(caller_rate=million, client_rate=million, anonymous=anonymous)
            settings = Settings(environment=PRODUCTION, data=data, extensions=extensions, limits=limits)
            app, _ = await stack.enter_async_context(open_app(settings))
            config = config_of(app)
        gc.collect()
        gc.freeze()
        listener = listen("127.0.0.1", 0)
        await Server(config, lambda: print(url_of("127.0.0.1", listener), flush=True)).serve([listener])


if __name__ == "__main__":
    pin_to_core(int(argument(3, 0)))
    uvloop.run(serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
