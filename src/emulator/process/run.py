"""Runs the service on a port until a signal stops it (`operations.md`, Starting)."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import socket
import sys
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jwt.warnings import InsecureKeyLengthWarning

from emulator.app import Service
from emulator.clock import Clock, system_now
from emulator.config.extensions import Extensions
from emulator.config.settings import Settings
from emulator.engines.engine import Engine, Upgrades
from emulator.engines.opening import open_engine
from emulator.errors import ConfigurationError, EngineError
from emulator.http.middleware import AccessLog, Application
from emulator.namespaces.registry import Registry
from emulator.opening import medium_of, open_app, open_service
from emulator.process.http_server import Server, StoppedEarly, config_of, listen, url_of
from emulator.process.signals import (
    HANGUPS,
    STOPS,
    SignalHandler,
    ignore_signals,
    reload_extensions,
    reload_on_hangup,
    warn_of_short_secrets,
)
from emulator.process.startup_log import is_beyond_loopback, log_admitted, log_serving, log_warnings, settings_warnings
from emulator.process.workers import Pipe, Work, Workers, exit_with_parent, report_serving

if TYPE_CHECKING:
    from emulator.process.tracing import Tracing

_log = logging.getLogger("emulator")

Announce = Callable[[str, str, str], object]
"""Called once the service serves: with its URL, its environment, and where its data is, without credentials."""
Hook = Callable[[Service], Awaitable[None]]
_MANY: Final = 200
"""Namespaces whose objects take about 20 ms to search."""


class Hooks(NamedTuple):
    """Callbacks that run before the service is ready, and after its last request. Their errors end the service."""

    prepare: Hook | None = None
    """Puts the data with which a service starts into it; raises `ConfigurationError`. A stop cancels it."""
    finish: Hook | None = None
    """Runs before the data is closed, unless a stop came before the service was ready. A stop waits for it."""


NO_HOOKS: Final = Hooks()


async def serve(
    settings: Settings,
    listener: socket.socket,
    started: Callable[[], None],
    hangups: SignalHandler,
    tracing: Tracing | None = None,
    hooks: Hooks = NO_HOOKS,
) -> None:
    """Serve until SIGTERM or SIGINT; call `started` once requests succeed.

    The service reports that it is not ready until it is prepared.
    """
    stops = SignalHandler(*STOPS)
    asyncio.get_running_loop().set_exception_handler(_log_loop_error)
    collect_garbage_less_often()
    async with open_app(settings) as (app, service):
        if not settings.has_peers:
            log_warnings(service.engine.warnings)
        # Exempt all objects created so far from garbage collection: nearly all exist until the process ends.
        if service.namespaces is None:
            gc.freeze()
        else:
            LongLived(service.namespaces)
        application: Application = AccessLog(app) if settings.logs.requests else app
        if tracing is not None:
            application = tracing.wrap(application)
        server = Server(
            config_of(application, settings.proxies),
            started,
            timeout=settings.limits.request_timeout,
            prepare=partial(_prepare, service, hooks.prepare, stops) if hooks.prepare is not None else None,
        )

        def stop() -> None:
            app.end_held()
            server.stop()

        stops.set_callback(stop)
        reloading = asyncio.create_task(
            reload_on_hangup(
                hangups,
                service.replace_extensions,
                settings.extensions_file,
                warns_of_short_secrets=not settings.has_peers,
            )
        )
        try:
            await server.serve([listener])
            if hooks.finish is not None:
                await hooks.finish(service)
        except StoppedEarly:
            _log.info("stopped before the service was ready")
        finally:
            reloading.cancel()


async def _prepare(service: Service, prepare: Hook, stops: SignalHandler) -> None:
    """Prepare a service. Raises `StoppedEarly` at a signal."""
    preparing = asyncio.ensure_future(prepared(service, prepare))
    with stops.use_callback(preparing.cancel):
        try:
            await preparing
        except asyncio.CancelledError:
            raise StoppedEarly from None


async def prepared(service: Service, prepare: Hook) -> None:
    """Run the preparation of a service, which reports that it is not ready until the preparation has ended."""
    service.control.is_starting = True
    await prepare(service)
    service.control.is_starting = False


def _log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no task awaits. asyncio's own handler would print the objects involved, secrets included."""
    _log.error(context["message"], exc_info=context.get("exception"))


def run(
    settings: Settings,
    host: str,
    port: int,
    workers: int = 1,
    hooks: Hooks = NO_HOOKS,
    announce: Announce | None = None,
) -> None:
    """Serve on `host` and `port` until SIGTERM or SIGINT; raises `ConfigurationError` or `EngineError`.

    Several workers share the port and the data, so the engine must be shared too. SIGHUP never stops the service.
    The hooks run once: with several workers, `prepare` before they start, and no `finish`.
    """
    if workers > 1 and sys.platform == "win32":
        raise ConfigurationError("--workers: processes cannot share a port on Windows; run one, the default")
    hangups = SignalHandler(*HANGUPS)
    engine = open_engine(settings.data, namespace=settings.environment.name)  # stays closed
    if workers > 1 and not engine.is_shared:
        raise ConfigurationError("--workers needs --data that processes can share, not in memory")
    with engine.exclusive_lock(), listen(host, port) as listener:
        is_token_chosen = bool(settings.control_token)
        if settings.environment.has_control and is_beyond_loopback(listener) and not is_token_chosen:
            settings = replace(settings, control_token=secrets.token_urlsafe(32))
        shows_token = bool(settings.control_token) and not is_token_chosen
        _run(settings, engine, listener, url_of(host, listener), workers, hangups, hooks, announce, shows_token)
    _log.info("stopped")


def _run(
    settings: Settings,
    engine: Engine,
    listener: socket.socket,
    url: str,
    workers: int,
    hangups: SignalHandler,
    hooks: Hooks,
    announce: Announce | None,
    shows_token: bool,
) -> None:
    # pyjwt would warn at each token; `warn_of_short_secrets` warns once.
    warnings.simplefilter("ignore", InsecureKeyLengthWarning)
    extensions = Extensions(settings.extensions)
    warn_of_short_secrets(extensions.current)
    log_warnings(settings_warnings(settings, engine))

    def started() -> None:
        if announce is not None:
            announce(url, settings.environment.name, engine.location)
        # The first line of standard output: scripts read the URL from it.
        os.write(sys.stdout.fileno(), f"listening on {url}\n".encode())
        log_serving(settings, engine, listener.getsockname()[1], workers)
        if settings.environment.has_control and is_beyond_loopback(listener):
            if shows_token:
                os.write(sys.stdout.fileno(), f"control token: {settings.control_token}\n".encode())
            log_admitted(settings, shows_token=shows_token)

    if workers == 1:
        _run_loop(settings, listener, started, hangups, hooks)
        return
    settings = replace(settings, has_peers=True)
    _check_startup(settings, hooks.prepare)

    def work() -> Work:
        """Return the work of a new worker, with the current extensions."""
        return partial(_run_worker, replace(settings, extensions=extensions.current))

    def reload() -> bool:
        file = settings.extensions_file
        if file is None or not reload_extensions(extensions.replace, file):
            return False
        warn_of_short_secrets(extensions.current)
        return True

    if not Workers(work, listener, workers).run(started, hangups, reload):
        raise ConfigurationError("a worker did not start; see the log above")


def _check_startup(settings: Settings, prepare: Hook | None) -> None:
    """Open and close the engine and the tracing, and run `prepare`: a failure is reported before a worker starts."""

    async def open_and_close() -> None:
        upgrades = Upgrades(settings.upgrade, system_now())
        async with open_engine(
            settings.data, namespace=settings.environment.name, is_alone=True, upgrades=upgrades
        ) as engine:
            log_warnings(engine.warnings)
        if prepare is not None:
            extensions = Extensions(settings.extensions, admits_any=settings.admits_any_client)
            clock = Clock()
            async with open_service(settings, extensions, medium_of(settings, clock), clock) as service:
                await prepare(service)

    asyncio.run(open_and_close())
    if (tracing := _open_tracing(settings)) is not None:
        tracing.close()


def _run_worker(settings: Settings, listener: socket.socket, ready: Pipe) -> None:
    hangups = SignalHandler(*HANGUPS)
    settings.logs.apply()
    warnings.simplefilter("ignore", InsecureKeyLengthWarning)
    exit_with_parent()
    try:
        _run_loop(settings, listener, partial(report_serving, ready), hangups)
    except EngineError as error:
        _log.error("%s", error)
    except Exception:
        _log.exception("unexpected failure of a worker")


def _run_loop(
    settings: Settings,
    listener: socket.socket,
    started: Callable[[], None],
    hangups: SignalHandler,
    hooks: Hooks = NO_HOOKS,
) -> None:
    tracing = _open_tracing(settings)
    serving = serve(settings, listener, started, hangups, tracing, hooks)
    if sys.platform == "win32":
        asyncio.run(serving)
    else:
        import uvloop

        uvloop.run(serving)
    ignore_signals()
    if tracing is not None:
        tracing.close()


def _open_tracing(settings: Settings) -> Tracing | None:
    if not settings.traces:
        return None
    try:
        from emulator.process.tracing import Tracing
    except ModuleNotFoundError as missing:
        raise ConfigurationError(f"--otel: {missing.name} is not installed: pip install 'extcli[otel]'") from None
    return Tracing(settings.environment.name)


def collect_garbage_less_often() -> None:
    """Raise the garbage collector's threshold of 700 new objects, because a request of 64 KiB may create 20,000."""
    gc.set_threshold(10_000, 20, 20)


class LongLived:
    """Exempts many open services from collections: searching the million objects of 2,000 namespaces takes 400 ms.

    A dropped service needs no collection: it has no reference cycles, so it is freed when its last user ends.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._exempt = 0
        """How many were open at the latest exemption, or fewer: some have been dropped since."""
        gc.freeze()  # nearly all objects of the start exist until the process ends
        registry.on_opened = self._note_opened

    def _note_opened(self) -> None:
        count = len(self._registry)
        self._exempt = min(self._exempt, count)
        if count >= self._exempt + _MANY:
            gc.collect()  # garbage that exists now would never be freed
            gc.freeze()
            self._exempt = count
