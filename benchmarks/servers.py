"""The measured servers: `python benchmarks/servers.py NAME --port PORT [OPTION]…` runs one.

service     `extcli serve` with these options
watched     the same; prints how long its event loop was held at each SIGUSR2
plain       a typed Litestar route that verifies a JWT per request and keeps the poll in memory: the reference
echo        a protocol that answers anything with the same bytes: the limit of the load generator
websockets  the `websockets` library's server, which sends each message to all clients with `broadcast()`
"""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import sys
import time
from contextlib import suppress
from typing import Annotated, Any

import jwt
import msgspec
import uvicorn
import uvloop
from common import SECRET
from litestar import Litestar, Request, post
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import FromQuery, JSONBody
from websockets.asyncio.server import ServerConnection, broadcast
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed

from emulator.process import run
from emulator.realtime import gateway
from extcli.main import main as extcli


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


def plain(port: int) -> None:
    polls: dict[str, Memory] = {}

    async def verify(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        _, token = connection.headers["authorization"].split(" ")
        connection.scope["user"] = jwt.decode(token, SECRET, algorithms=["HS256"])

    @post("/v1/e/vote", status_code=200, guards=[verify])
    async def vote(
        request: Request[Any, Any, Any], data: JSONBody[VoteBody], id: FromQuery[str] = "default"
    ) -> dict[str, Any]:
        return polls.setdefault(id, Memory()).cast(request.scope["user"]["user_id"], data.value)

    app = Litestar([vote], openapi_config=None, logging_config=None)
    gc.collect()
    gc.freeze()
    uvicorn.run(app, port=port, ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False)


class Echo(asyncio.Protocol):
    """Answers whatever arrives, as long as a response to a vote."""

    _RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n" + b" " * 400

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._RESPONSE)


async def echo(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port)
    await server.serve_forever()


async def websockets(port: int) -> None:
    connections: set[ServerConnection] = set()

    async def repeat(connection: ServerConnection) -> None:
        connections.add(connection)
        with suppress(ConnectionClosed):
            async for message in connection:
                broadcast(connections, message)
        connections.discard(connection)

    async with serve_websockets(repeat, "127.0.0.1", port, compression=None, ping_interval=None) as server:
        await server.serve_forever()


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


def watch_loop() -> None:
    """Make the service report how long its event loop was held."""
    serve = run.serve

    async def watched(*arguments: Any) -> None:
        _ = Holds()
        await serve(*arguments)

    run.serve = watched


def main(name: str, *options: str) -> None:
    port = int(options[1])
    match name:
        case "plain":
            plain(port)
        case "echo":
            uvloop.run(echo(port))
        case "websockets":
            uvloop.run(websockets(port))
        case _:
            gateway.PING_EVERY = 3_600.0  # the clients count bytes, pings included
            if name == "watched":
                watch_loop()
            sys.argv[1:] = ["serve", *options]
            sys.exit(extcli())


if __name__ == "__main__":
    main(*sys.argv[1:])
