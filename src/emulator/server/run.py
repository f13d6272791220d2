"""Runs a service on a port until a signal stops it (`operations.md`, Starting)."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import socket
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import uvicorn
from jwt.warnings import InsecureKeyLengthWarning

from emulator.app import open_app
from emulator.config.extensions import Extensions
from emulator.config.settings import Settings
from emulator.engines import open_engine
from emulator.errors import ConfigurationError, EngineError
from emulator.realtime.websocket import WebSocket
from emulator.server.http_protocol import Protocol, cut_overdue
from emulator.server.middleware import AccessLog, Application
from emulator.server.proxies import ProxyHeaders
from emulator.server.reload import follow, reread, warn_of_short_secrets
from emulator.server.signals import HANGUPS, STOPS, Signals, ignore_signals
from emulator.server.startup_log import log_serving, log_stopped, log_warnings, settings_warnings
from emulator.server.workers import Work, Workers, exit_with_parent

if TYPE_CHECKING:
    from emulator.server.tracing import Tracing

_log = logging.getLogger("emulator")
_GRACE = 3
"""Seconds that requests under way are given at a stop; all must be over within five."""
_BACKLOG = 2048


class Server(uvicorn.Server):
    """uvicorn, which leaves signals to `Signals`, has a word when it serves, and waits for nobody for ever.

    A request that comes too slowly, or whose answer is not taken, is cut after `timeout` seconds; with 0, never.
    """

    def __init__(self, config: uvicorn.Config, started: Callable[[], None], *, timeout: float = 0) -> None:
        super().__init__(config)
        self._tell_started = started
        self._timeout = timeout

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped."""
        if not self._timeout:
            await super().serve(sockets)
            return
        cutting = asyncio.create_task(cut_overdue(self.server_state.connections, self._timeout))
        try:
            await super().serve(sockets)
        finally:
            cutting.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and say so."""
        await super().startup(sockets)
        self._tell_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone: uvicorn would give them back before the process has ended."""
        yield

    def stop(self) -> None:
        """Take no more requests, and end when those under way are answered."""
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises `ConfigurationError` with one line."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # With the protocol named, asyncio sets TCP_NODELAY; without, each answer may wait 40 ms for an acknowledgement.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        hint = "; --port 0 takes a free port" if getattr(error, "errno", None) == errno.EADDRINUSE else ""
        raise ConfigurationError(f"--host {host} --port {port}: {why}{hint}") from None
    return listener


def url_of(host: str, listener: socket.socket) -> str:
    """The base URL under which a listening socket is reached."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def config_of(app: Application, proxies: tuple[str, ...] = ()) -> uvicorn.Config:
    """How uvicorn is to serve it. Where a request comes from is what the connection says, except for `proxies`."""
    return uvicorn.Config(
        ProxyHeaders(app, proxies) if proxies else app,
        http=Protocol,
        ws=WebSocket,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=75,
    )


async def serve(
    settings: Settings,
    listener: socket.socket,
    started: Callable[[], None],
    hangups: Signals,
    tracing: Tracing | None = None,
) -> None:
    """Serve until a signal comes. `started` is called when a request sent next will not fail."""
    stops = Signals(*STOPS)
    asyncio.get_running_loop().set_exception_handler(_complain)
    async with open_app(settings) as (app, service):
        if not settings.has_peers:
            log_warnings(service.engine.warnings)
        # What exists by now stays; the collector need not look through it again and again while requests come.
        gc.collect()
        gc.freeze()
        outermost: Application = AccessLog(app) if settings.logs.requests else app
        if tracing is not None:
            outermost = tracing.around(outermost)
        server = Server(config_of(outermost, settings.proxies), started, timeout=settings.limits.request_timeout)
        stops.then(server.stop)
        async with _following(settings, service.extensions, hangups):
            await server.serve([listener])


def _complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody waits for has failed. asyncio would also print what was at hand, with all that is in it."""
    _log.error(context["message"], exc_info=context.get("exception"))


@asynccontextmanager
async def _following(settings: Settings, extensions: Extensions, hangups: Signals) -> AsyncIterator[None]:
    """Take hangups as the wish to read the extensions again; as nothing, if they came from no file."""
    if settings.extensions_file is None:
        yield
        return
    task = asyncio.create_task(follow(hangups, extensions, settings.extensions_file, warns=not settings.has_peers))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def run(settings: Settings, host: str, port: int, workers: int = 1) -> None:
    """Serve on `host` and `port` until SIGTERM or SIGINT; raises `ConfigurationError` or `EngineError`.

    Several workers share the port and the data, so their data must be a file. SIGHUP never ends it.
    """
    hangups = Signals(*HANGUPS)
    engine = open_engine(settings.data, namespace="")  # stays closed: it only describes itself
    if workers > 1 and not engine.is_shared:
        raise ConfigurationError("--workers needs --data that processes can share: data in memory is one process's own")
    # pyjwt would warn at each token; what is wrong is said once, here.
    warnings.simplefilter("ignore", InsecureKeyLengthWarning)
    extensions = Extensions(settings.extensions)
    warn_of_short_secrets(extensions)
    listener = listen(host, port)
    log_warnings(settings_warnings(settings, engine))

    def started() -> None:
        announce(url_of(host, listener))
        log_serving(settings, engine.location, listener.getsockname()[1], workers)

    if workers == 1:
        _run_loop(settings, listener, started, hangups)
        log_stopped()
        return
    open_and_close(settings)
    settings = replace(settings, has_peers=True)

    def work() -> Work:
        """What a worker does that starts now: the extensions may not be those of the start."""
        return partial(_work, replace(settings, extensions=extensions.current))

    def read_again() -> bool:
        file = settings.extensions_file
        if file is None or not reread(extensions, file):
            return False
        warn_of_short_secrets(extensions)
        return True

    if not Workers(work, listener, workers).run(started, hangups, read_again):
        raise ConfigurationError("a worker did not come up; its reason stands above")
    log_stopped()


def open_and_close(settings: Settings) -> None:
    """Find out in one place, before there are workers, whether all that each of them needs is there.

    Raises `EngineError` or `ConfigurationError`.
    """

    async def try_it() -> None:
        async with open_engine(settings.data, namespace=settings.environment.name) as engine:
            log_warnings(engine.warnings)

    asyncio.run(try_it())
    if (tracing := open_tracing(settings)) is not None:
        tracing.close()


def announce(url: str) -> None:
    """The first line of standard output, by which scripts learn the URL."""
    os.write(sys.stdout.fileno(), f"listening on {url}\n".encode())


def _work(settings: Settings, listener: socket.socket, ready: Connection) -> None:
    hangups = Signals(*HANGUPS)
    settings.logs.apply()
    warnings.simplefilter("ignore", InsecureKeyLengthWarning)
    exit_with_parent()
    try:
        _run_loop(settings, listener, partial(ready.send, True), hangups)
    except EngineError as error:
        _log.error("%s", error)
    except Exception:
        _log.exception("unexpected failure of a worker")


def _run_loop(settings: Settings, listener: socket.socket, started: Callable[[], None], hangups: Signals) -> None:
    tracing = open_tracing(settings)
    serving = serve(settings, listener, started, hangups, tracing)
    if sys.platform == "win32":
        asyncio.run(serving)
    else:
        import uvloop

        uvloop.run(serving)
    ignore_signals()
    if tracing is not None:
        tracing.close()


def open_tracing(settings: Settings) -> Tracing | None:
    """What makes spans, if there are to be any; raises `ConfigurationError` without the packages for it."""
    if not settings.traces:
        return None
    try:
        from emulator.server.tracing import Tracing
    except ModuleNotFoundError as missing:
        raise ConfigurationError(f"--otel: {missing.name} is not installed: pip install 'extcli[otel]'") from None
    return Tracing(settings.environment.name)
