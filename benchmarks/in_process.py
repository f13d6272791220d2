"""Drives a service in this process: bytes go into its HTTP protocol, and come out of a transport in memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from audience import authentication
from common import CLIENT_ID, SECRET
from crowd import frame
from uvicorn.server import ServerState

from emulator.core.environment import Environment
from emulator.core.extensions import Extension
from emulator.core.settings import Limits, Settings
from emulator.http.hot_path import HotPath
from emulator.process.http_server import uvicorn_config
from emulator.process.opening import open_app


class Wire(asyncio.Transport):
    """A transport in memory. A call ends after the pass of the event loop that writes."""

    def __init__(self, protocol: Any) -> None:
        super().__init__()
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._written = self._loop.create_future()
        self._parts: list[bytes] = []
        self._socket = socket.socket()

    async def call(self, data: bytes) -> bytes:
        """Hand bytes to the protocol; return what it writes."""
        self._written = self._loop.create_future()
        buffer = self._protocol.get_buffer(len(data))
        buffer[: len(data)] = data
        self._protocol.buffer_updated(len(data))
        await self._written
        written, self._parts = b"".join(self._parts), []
        return written

    def write(self, data: Any) -> None:
        if not self._parts:
            self._loop.call_soon(self._written.set_result, None)
        self._parts.append(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return self._socket
        return ("127.0.0.1", 8282) if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        return False

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


@asynccontextmanager
async def connected(environment: Environment, folder: str, *, knows_extension: bool = True) -> AsyncIterator[Wire]:
    """Open a service with its data in a file in `folder`, and a connection to it.

    `knows_extension` is whether the extension of the requests is registered with its secret.
    """
    sleep = asyncio.sleep
    settings = Settings(
        environment=environment,
        data=f"sqlite:///{folder}/data.db",
        extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))} if knows_extension else {},
        control_hosts=("bench",),
        limits=Limits(caller_rate=1_000_000),  # enforced, but never reached
    )
    # Work at intervals would run more often the slower the machine is.
    with patch.object(asyncio, "sleep", lambda delay, *result: sleep(delay and 86_400, *result)):
        async with open_app(settings) as (app, service):
            config = uvicorn_config(app, settings, HotPath(service.dispatcher))
            config.load()
            loop = asyncio.get_running_loop()
            kind: Any = config.http_protocol_class
            protocol = kind(config=config, server_state=ServerState(), app_state={}, _loop=loop)
            wire = Wire(protocol)
            protocol.connection_made(wire)
            yield wire


async def open_socket(wire: Wire) -> None:
    """Make the connection a WebSocket of channel 1."""
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    switched = await wire.call(f"GET /0.2.0/{CLIENT_ID} HTTP/1.1\r\nHost: bench\r\n{upgrade}\r\n".encode())
    assert switched.startswith(b"HTTP/1.1 101"), switched
    reply = await wire.call(frame(authentication()))
    assert b'"errors"' not in reply, reply
