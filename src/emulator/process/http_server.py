"""The HTTP server: uvicorn, adapted, on a port."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import uvicorn
from litestar.types import ASGIApp

from emulator.core.errors import ConfigurationError, PortTaken
from emulator.core.limits import OpenConnections
from emulator.core.settings import Settings
from emulator.core.wire.transports import ShortReads
from emulator.http.hot_path import HotPath
from emulator.http.http_protocol import SECURITY_HEADERS
from emulator.http.http_protocol import Protocol as HttpProtocol
from emulator.http.mount import Application, ForwardedHeaders, mount, root_stripper
from emulator.realtime.websocket import PeerFactory, WebSocket

_GRACE_SECONDS = 3
"""Seconds that running requests get at a stop, which must end within five."""
_BACKLOG = 2048
_MAX_PORTS_TRIED = 50
"""How many free ports are tried until one is free at all addresses."""
_MISSING_ADDRESS_ERRORS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""Errors for an address, or a family of addresses, that this machine does not have."""
LOOPBACK = ("127.0.0.1", "::1")
"""Where a service listens by default."""


class Server(uvicorn.Server):
    """uvicorn's server with a startup callback, request timeouts and a prompt stop, and without its signal handling.

    `started` is awaited while the port is open; if it raises, the server stops. `timeout` is in seconds; 0 means no
    limit. See `Protocol.close_if_overdue`.
    """

    def __init__(self, config: uvicorn.Config, started: Callable[[], Awaitable[None]], *, timeout: float = 0) -> None:
        super().__init__(config)
        self._on_started = started
        self._timeout = timeout
        self._stopped = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve, then await `started`."""
        await super().startup(sockets)
        try:
            await self._on_started()
        except BaseException:
            await self.shutdown(sockets)
            raise

    async def main_loop(self) -> None:
        """Serve until `stop`, with a tick each second. uvicorn would notice a stop at its next tick only."""
        while not await self.on_tick(0):
            # Checking all connections once a second is cheaper than a timer for each request.
            for connection in list(self.server_state.connections):
                if isinstance(connection, HttpProtocol):
                    connection.close_if_overdue(self._timeout)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. Requests that outlast `_GRACE_SECONDS` are cancelled; one line of the log says how many."""
        logging.getLogger("uvicorn.error").addFilter(_is_not_a_cancellation)
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


def _is_not_a_cancellation(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


def listen(host: str, port: int) -> list[socket.socket]:
    """Open a listening socket at each address of a host; an empty one means both loopback addresses.

    All have one port; port 0 takes a free one. Addresses that this machine lacks are left out, unless it lacks all.
    Raises `ConfigurationError`.
    """
    shown = host or LOOPBACK[0]
    try:
        hosts = [host.removeprefix("[").removesuffix("]")] if host else LOOPBACK
        # By address: a name may have one twice. A protocol that is named makes asyncio set TCP_NODELAY; without it, a
        # response may wait 40 ms for an ACK.
        places = {}
        for name in hosts:
            for family, kind, protocol, _, address in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
                places[address] = family, kind, protocol
        attempts = 1 if port else _MAX_PORTS_TRIED
        while True:
            attempts -= 1
            try:
                return _open_sockets(places, port)
            except OSError as error:
                if not (attempts and is_port_taken(error)):
                    raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = f"--host {shown} --port {port}: {reason}"
        if is_port_taken(error):
            raise PortTaken(f"{problem}; --port 0 chooses a free port", port) from None
        raise ConfigurationError(problem) from None


def _open_sockets(places: Mapping[Any, tuple[Any, Any, int]], port: int) -> list[socket.socket]:
    """Open a socket at each of these addresses that this machine has, on one port. Raises `OSError`."""
    lacking: OSError | None = None
    with ExitStack() as opened:
        listeners: list[socket.socket] = []
        for (name, _, *rest), kind in places.items():
            try:
                listener = opened.enter_context(socket.socket(*kind))
                _set_options(listener, is_one_of_many=len(places) > 1)
                listener.bind((name, port, *rest))
            except OSError as error:
                if error.errno not in _MISSING_ADDRESS_ERRORS:
                    raise
                lacking = error
                continue
            listener.listen(_BACKLOG)
            listeners.append(listener)
            port = listener.getsockname()[1]
        if lacking is not None and not listeners:
            raise lacking
        opened.pop_all()
    return listeners


def _set_options(listener: socket.socket, *, is_one_of_many: bool) -> None:
    if sys.platform == "win32":  # where SO_REUSEADDR lets two services bind one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_one_of_many and listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # others have the addresses of IPv4


def is_port_taken(error: Exception) -> bool:
    """Return whether another program uses the port, or on Windows has reserved it (WinError 10013)."""
    return getattr(error, "errno", None) == errno.EADDRINUSE or getattr(error, "winerror", None) == 10013


class Tls(NamedTuple):
    """How a service encrypts its connections."""

    context: ssl.SSLContext
    advice: str = ""
    """Lines about trust in the certificate, for standard output."""


def base_url(host: str, listener: socket.socket, tls: Tls | None = None) -> str:
    """Return the base URL of a listening socket."""
    port, host = listener.getsockname()[1], host.strip("[]") or LOOPBACK[0]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


class WebApp(Application, PeerFactory, Protocol):
    """An application that serves HTTP and opens peers for WebSockets."""


def uvicorn_config(
    app: WebApp, settings: Settings, hot_path: HotPath | None, outermost: ASGIApp | None = None, tls: Tls | None = None
) -> uvicorn.Config:
    """Return uvicorn's configuration; headers of proxies are trusted from the settings' proxies only.

    `outermost` is middleware around the application. It sees every request that does not take the hot path.
    """
    proxies = settings.proxies
    connections = OpenConnections(settings.anonymous.address_connections, proxies)
    forwarding = ForwardedHeaders(proxies) if proxies else None
    strip_root = root_stripper(settings.root_path)

    def protocol(**given: Any) -> ShortReads:
        return ShortReads(HttpProtocol(app, hot_path, connections, forwarding, strip_root, **given))

    return uvicorn.Config(
        cast("Any", mount(app, outermost or app)),
        http=cast("Any", protocol),
        ws=cast("Any", partial(WebSocket, app, settings.limits)),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        headers=list(SECURITY_HEADERS),
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=75,
        ssl_context_factory=(lambda *_: tls.context) if tls else None,
    )
