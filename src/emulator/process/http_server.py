"""The HTTP server: uvicorn, adapted, on a port."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn

from emulator.errors import ConfigurationError, PortTaken
from emulator.http.http_protocol import SECURITY_HEADERS, Protocol, close_overdue
from emulator.http.middleware import Application, ProxyHeaders
from emulator.realtime.websocket import WebSocket

_GRACE = 3
"""Seconds that running requests get at a stop, which must end within five."""
_BACKLOG = 2048


class StoppedEarly(Exception):
    """Raised if a signal arrives before the service is ready."""


class Server(uvicorn.Server):
    """uvicorn's server with a startup callback, request timeouts and a prompt stop, and without its signal handling.

    `timeout` is in seconds; 0 means no limit. See `Protocol.close_if_overdue`. `prepare` runs while the port is open,
    before `started` is called; if it raises, the server stops.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        started: Callable[[], None],
        *,
        timeout: float = 0,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(config)
        self._on_started = started
        self._timeout = timeout
        self._prepare = prepare
        self._stopped = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped."""
        closing = asyncio.create_task(close_overdue(self.server_state.connections, self._timeout))
        try:
            await super().serve(sockets)
        finally:
            closing.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve, then call `started`."""
        await super().startup(sockets)
        if self._prepare is not None:
            try:
                if self.should_exit:
                    raise StoppedEarly
                await self._prepare()
            except BaseException:
                await self.shutdown(sockets)
                raise
        self._on_started()

    async def main_loop(self) -> None:
        """Serve until `stop`. uvicorn itself would check for a stop only ten times a second."""
        serving, stopped = asyncio.ensure_future(super().main_loop()), asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving  # raises the error that stopped it
        finally:
            serving.cancel()
            stopped.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. Requests that outlast `_GRACE` are cancelled; one line of the log says how many."""
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
        else:  # uvicorn would wait a tenth of a second for no connection.
            for listener in (*self.servers, *(sockets or ())):
                listener.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: uvicorn would restore the default handlers before the process ends."""
        yield

    def stop(self) -> None:
        """Accept no more connections, and stop after the responses to running requests. Call it in the event loop."""
        self.should_exit = True
        self._stopped.set()


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free port. Raises `ConfigurationError`."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # asyncio sets TCP_NODELAY only if the protocol is named; without it, a response may wait 40 ms for an ACK.
        listener = socket.socket(family, kind, protocol)
        if sys.platform == "win32":  # where SO_REUSEADDR lets two services bind one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = f"--host {host} --port {port}: {reason}"
        if is_taken(error):
            raise PortTaken(f"{problem}; --port 0 takes a free port", port) from None
        raise ConfigurationError(problem) from None
    return listener


def is_taken(error: Exception) -> bool:
    """Return whether another program uses the port, or on Windows has reserved it (WinError 10013)."""
    return getattr(error, "errno", None) == errno.EADDRINUSE or getattr(error, "winerror", None) == 10013


def url_of(host: str, listener: socket.socket) -> str:
    """Return the base URL of a listening socket."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def config_of(app: Application, proxies: tuple[str, ...] = ()) -> uvicorn.Config:
    """Return uvicorn's configuration; `X-Forwarded-For` is trusted from `proxies` only."""
    return uvicorn.Config(
        ProxyHeaders(app, proxies) if proxies else app,
        http=Protocol,
        ws=WebSocket,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        headers=list(SECURITY_HEADERS),
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=75,
    )
