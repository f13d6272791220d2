"""Runs the service on a port until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import os
import secrets
import socket
import stat
import sys
import tomllib
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from litestar.types import ASGIApp

from emulator.app import Service
from emulator.auth.jwts import InsecureKeyLengthWarning
from emulator.core.errors import ConfigurationError
from emulator.core.settings import Settings
from emulator.http.hot_path import HotPath
from emulator.http.mount import AccessLog
from emulator.process import signals
from emulator.process.http_server import Server, Tls, base_url, listen, uvicorn_config
from emulator.process.opening import open_app
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine

if TYPE_CHECKING:
    from emulator.process.tracing import Tracing

_log = logging.getLogger("emulator")

Announce = Callable[[str, str, str], object]
"""Called once the service serves: with its URL, its environment, and where its data is, without credentials."""
Hook = Callable[[Service], Awaitable[None]]


class Hooks(NamedTuple):
    """Callbacks that run before the service is ready, and after its last request. Their errors end the service."""

    prepare: Hook | None = None
    """Puts the data with which a service starts into it; raises `ConfigurationError`. A stop cancels it."""
    finish: Hook | None = None
    """Runs before the data is closed, unless a stop came before the service was ready. A stop waits for it."""


async def serve(
    settings: Settings,
    listeners: list[socket.socket],
    started: Callable[[], None],
    hangups: signals.SignalHandler,
    tracing: Tracing | None,
    hooks: Hooks,
    tls: Tls | None,
) -> None:
    """Serve until SIGTERM or SIGINT; call `started` once requests succeed.

    The service reports that it is not ready until it is prepared.
    """
    stops = signals.SignalHandler(*signals.STOP_SIGNALS)
    asyncio.get_running_loop().set_exception_handler(_log_loop_error)
    gc.set_threshold(10_000, 20, 20)  # not after 700 new objects: a request of 64 KiB may create 20,000
    async with open_app(settings) as (app, service):
        log_warnings(service.engine.warnings)
        gc.freeze()  # nearly all objects of the start exist until the process ends
        outermost: ASGIApp | None = AccessLog(app) if settings.logs.requests else None
        if tracing is not None:
            outermost = tracing.wrap(outermost or app)
        config = uvicorn_config(app, settings, None if outermost else HotPath(service.dispatcher), outermost, tls)

        async def prepare_and_start() -> None:
            if hooks.prepare is not None:
                preparing = asyncio.ensure_future(prepare_service(service, hooks.prepare))
                if server.should_exit:
                    preparing.cancel()
                with stops.use_callback(preparing.cancel):
                    await preparing
            started()

        def stop() -> None:
            app.end_held()
            server.stop()

        server = Server(config, prepare_and_start, timeout=settings.limits.request_timeout)
        reloading = asyncio.create_task(
            signals.reload_on_hangup(hangups, service.replace_extensions, settings.extensions_file)
        )
        try:
            with stops.use_callback(stop):
                await server.serve(listeners)
                if hooks.finish is not None:
                    await hooks.finish(service)
        except asyncio.CancelledError:  # the preparation, by a stop
            _log.info("stopped before the service was ready")
        finally:
            reloading.cancel()


async def prepare_service(service: Service, prepare: Hook) -> None:
    """Run the preparation of a service, which reports that it is not ready until the preparation has ended."""
    service.control.is_starting = True
    await prepare(service)
    service.control.is_starting = False


def allow_open_files() -> None:
    """Raise the limit of open files as far as the system allows. Each connection is one, and 1,024 are usual."""
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with suppress(OSError, ValueError):  # macOS refuses an unlimited number
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def _log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no task awaits. asyncio's own handler would print the objects involved, secrets included."""
    _log.error(context["message"], exc_info=context.get("exception"))


def run(settings: Settings, host: str, port: int, hooks: Hooks, announce: Announce, tls: Tls | None = None) -> None:
    """Serve on `host` and `port` until SIGTERM or SIGINT; raises `ConfigurationError` or `EngineError`.

    SIGHUP stops it too, unless it reloads the extensions (`HangupHandler`). An empty `host` is both loopback addresses.
    """
    hangups = signals.HangupHandler(reloads=settings.extensions_file is not None)
    allow_open_files()
    engine = open_engine(settings.data, namespace=settings.environment.name)  # stays closed
    with engine.exclusive_lock(), ExitStack() as opened:
        listeners = [opened.enter_context(each) for each in listen(host, port)]
        url = base_url(host, listeners[0], tls) + settings.root_path
        admits_others = settings.environment.has_control and is_reachable_from_elsewhere(listeners)
        shows_token = admits_others and not settings.control_token
        if shows_token:
            settings = replace(settings, control_token=secrets.token_urlsafe(32))
        # pyjwt would warn at each token; `warn_of_short_secrets` warns once.
        warnings.simplefilter("ignore", InsecureKeyLengthWarning)
        signals.warn_of_short_secrets(settings.extensions)
        log_warnings(settings_warnings(settings, engine))

        def started() -> None:
            announce(url, settings.environment.name, engine.location)
            # The first line of standard output: scripts read the URL from it.
            os.write(sys.stdout.fileno(), f"listening on {url}\n{tls.advice if tls else ''}".encode())
            _log.info(
                "serving: extcli %s, %s, data in %s, format %s, port %s, registered extensions: %s",
                version("extcli"), settings.environment.name, engine.location, engine.format,
                listeners[0].getsockname()[1], len(settings.extensions),
            )  # fmt: skip
            if shows_token:
                os.write(sys.stdout.fileno(), f"control token: {settings.control_token}\n".encode())
            if admits_others:
                log_control_callers(settings, shows_token=shows_token)

        tracing = _open_tracing(settings)
        serving = serve(settings, listeners, started, hangups, tracing, hooks, tls)
        if sys.platform == "win32":
            asyncio.run(serving)
        else:
            import uvloop

            uvloop.run(serving)
        signals.ignore_signals()
        if tracing is not None:
            tracing.close()
    _log.info("stopped")


def _open_tracing(settings: Settings) -> Tracing | None:
    if not settings.traces:
        return None
    try:
        from emulator.process.tracing import Tracing
    except ModuleNotFoundError as missing:
        raise ConfigurationError(f"--otel: {missing.name} is not installed: pip install 'extcli[otel]'") from None
    return Tracing(settings.environment.name)


def is_reachable_from_elsewhere(listeners: Iterable[socket.socket]) -> bool:
    """Whether clients on other machines may reach the port."""
    addresses = (each.getsockname()[0].partition("%")[0] for each in listeners)
    return not all(ipaddress.ip_address(each).is_loopback for each in addresses)


def log_control_callers(settings: Settings, *, shows_token: bool) -> None:
    """Log who may call the control API of a sandbox that listens beyond loopback."""
    token = "the control token printed on standard output" if shows_token else "the configured control token"
    hosts = "".join(f", and any caller that uses the host {host}" for host in settings.control_hosts)
    _log.info(
        "the control API accepts programs on this machine, clients with %s (EXTCLI_CONTROL_TOKEN)%s", token, hosts
    )


def log_warnings(warnings: Iterable[str]) -> None:
    """Log one line for each warning."""
    for warning in warnings:
        _log.warning("%s", warning)


def settings_warnings(settings: Settings, engine: Engine) -> Iterator[str]:
    """Yield warnings of settings that are valid but risky: lost data, readable secrets."""
    if settings.environment.is_strict and not engine.survives_restart:
        yield "--production keeps data in memory, and a stop loses all data: set --data"
    # Only regular files: a pipe can be read once.
    if settings.extensions_file is not None and settings.extensions_file.is_file() and sys.platform != "win32":
        for file in _files_with_secrets(settings.extensions_file):
            if file.is_file() and os.stat(file).st_mode & stat.S_IROTH:
                yield f"{file}: contains secrets, but every user of this machine can read it: run chmod o-r"


def _files_with_secrets(file: Path) -> Iterator[Path]:
    """Yield the files that hold secrets: those that a valid extensions file names, and the extensions file if it
    contains any.
    """
    tables = tomllib.loads(file.read_text(encoding="utf-8"))["extensions"].values()
    if any(table.get("secrets") for table in tables):
        yield file
    names = [name for table in tables for name in table.get("secret_files", [])]
    yield from dict.fromkeys(file.parent / name for name in names)
