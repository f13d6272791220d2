"""`extcli serve`: starts the service. Imports it when it starts: `extcli exec` has the same options."""

from __future__ import annotations

import inspect
import logging
import os
from contextlib import ExitStack
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from extcli.cli import serve_options as options
from extcli.cli.fast_import import garbage_collection_paused
from extcli.cli.shared_options import Command
from extcli.errors import ExitCode, UsageError

_NOT_EXPORTED = 1
"""The exit code if the data could not be exported at the stop."""


class ServeCommand(Command):
    """Reports usage errors on one line, like every other configuration error of the service."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            message: str = error.format_message()
            typer.echo(f"extcli {ctx.info_name}: {' '.join(message.split())}", err=True)
            raise typer.Exit(ExitCode.USAGE) from None


def _warn_of_unknown_variables() -> None:
    """Log each variable that looks like an option but is none, for example because of a typo."""
    known = [name.rstrip("_").upper() for name in inspect.signature(serve).parameters]
    for variable in sorted(each for each in os.environ if each.startswith(options.VARIABLES)):
        name = variable.removeprefix(options.VARIABLES)
        if name not in known:
            hint = "".join(f"; did you mean {options.VARIABLES}{match}?" for match in get_close_matches(name, known, 1))
            logging.getLogger("emulator").warning("%s: unknown option%s", variable, hint)


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("serve", cls=ServeCommand)
def serve(
    host: options.Host = "127.0.0.1",
    port: options.Port = 8282,
    production: options.Production = False,
    data: options.Data = "sqlite://",
    extensions: options.Extensions = None,
    leeway: options.Leeway = 0,
    workers: options.Workers = 1,
    registered_only: options.RegisteredOnly = False,
    channel_stores: options.ChannelStores = "shared",
    page_events: options.PageEvents = "all",
    control_host: options.ControlHost = None,
    max_body: options.MaxBody = 64,
    max_user_map: options.MaxUserMap = 4,
    max_codes: options.MaxCodes = 1024,
    max_user_list: options.MaxUserList = 64,
    max_frame: options.MaxFrame = 2048,
    max_sockets: options.MaxSockets = 10_000,
    max_subscriptions: options.MaxSubscriptions = 1_000,
    max_ids: options.MaxIds = 1_000,
    caller_rate: options.CallerRate = None,
    client_rate: options.ClientRate = 0,
    address_pins: options.AddressPins = None,
    address_pin_attempts: options.AddressPinAttempts = None,
    client_pin_attempts: options.ClientPinAttempts = None,
    address_sockets: options.AddressSockets = None,
    max_unauthenticated: options.MaxUnauthenticated = None,
    login_timeout: options.LoginTimeout = None,
    address_pages: options.AddressPages = None,
    address_kib: options.AddressKib = None,
    request_timeout: options.RequestTimeout = 30,
    proxy: options.Proxy = None,
    log_level: options.LogLevel = "info",
    log_format: options.LogFormat = "text",
    log_requests: options.LogRequests = False,
    log_audit: options.LogAudit = None,
    otel: options.Otel = False,
    namespace_idle: options.NamespaceIdle = None,
    journal: options.Journal = "16MiB",
    no_upgrade: options.NoUpgrade = False,
    seed: options.Seed = None,
    import_: options.Import = None,
    export_on_exit: options.ExportOnExit = None,
    name: options.Name = None,
    open_: options.Open = False,
    lifeline: options.Lifeline = None,
) -> None:
    """Start the service.

    By default it is a sandbox with its data in memory. The first line on standard output is
    `listening on URL`; logs go to standard error. SIGINT and SIGTERM stop it cleanly.
    SIGHUP reloads --extensions. In a variable, several values are separated by spaces.

    Example: extcli serve --port 0 --data sqlite:///srv/extension.db
    """
    with garbage_collection_paused():
        from emulator.config.settings import KIB, MIB, Limits, read_settings
        from emulator.errors import ConfigurationError, EngineError, ExportFailed
        from emulator.observability.logs import LogSettings
        from emulator.server import run as server
    try:
        if lifeline is not None:
            from emulator.server.lifeline import stop_when_closed

            stop_when_closed(lifeline)
        if name is not None:
            from extcli.running.registry import registered
        is_audited = lifeline is None if log_audit is None else log_audit
        logs = LogSettings(log_level, log_format, log_requests, is_audited)
        logs.apply()
        _warn_of_unknown_variables()
        settings = read_settings(
            production=production,
            data=data,
            extensions=extensions,
            registered_only=registered_only,
            channel_stores=channel_stores,
            page_events=page_events,
            leeway=leeway,
            control_hosts=tuple(control_host or ()),
            limits=Limits(
                body=max_body * KIB,
                user_map=max_user_map * MIB,
                codes=max_codes * MIB,
                user_list=max_user_list * MIB,
                frame=max_frame * KIB,
                sockets=max_sockets,
                topics=max_subscriptions,
                ids=max_ids,
                caller_rate=caller_rate,
                client_rate=client_rate,
                request_timeout=request_timeout,
            ),
            anonymous={
                "address_pins": address_pins,
                "address_pin_attempts": address_pin_attempts,
                "client_pin_attempts": client_pin_attempts,
                "address_sockets": address_sockets,
                "max_unauthenticated": max_unauthenticated,
                "login_timeout": login_timeout,
                "address_pages": address_pages,
                "address_kib": address_kib,
            },
            proxies=tuple(proxy or ()),
            logs=logs,
            traces=otel,
            namespace_idle=None if namespace_idle is None else _seconds("--namespace-idle", namespace_idle),
            journal=journal,
            upgrade=not no_upgrade,
        )
        prepare, finish = _preparation(seed, production=production), None
        if import_ is not None or export_on_exit is not None:
            files = _snapshot_files(import_, export_on_exit)
            files.check(settings, workers)
            prepare, finish = _in_turn(files.load, prepare), files.save
        if open_ and production:
            raise ConfigurationError("--open: --production has no dashboard")
        with ExitStack() as stack:
            announced: list[Any] = [] if name is None else [stack.enter_context(registered(name)).announce]
            if open_:
                announced.append(_open_dashboard)
            announce = (lambda *details: [each(*details) for each in announced]) if announced else None
            server.run(settings, host, port, workers, server.Hooks(prepare, finish), announce)
    except (ConfigurationError, EngineError, UsageError) as error:
        typer.echo(f"extcli serve: {error}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None
    except ExportFailed as error:
        typer.echo(f"extcli serve: {error}", err=True)
        raise typer.Exit(_NOT_EXPORTED) from None
    except Exception:
        # Logged, unlike a bug in another command: the log leaves out exception messages, which may quote data.
        logging.getLogger("emulator").exception("this is a bug in extcli; please report it with the lines below")
        raise typer.Exit(ExitCode.BUG) from None


def _open_dashboard(url: str, *_: str) -> None:
    """Open the dashboard in a thread: some browsers run until the user closes them."""
    import threading

    from extcli.running.browser import dashboard_of, open_page

    def opening() -> None:
        if not open_page(dashboard_of(url)):
            logging.getLogger("emulator").warning("--open: no browser was found; open %s yourself", dashboard_of(url))

    threading.Thread(target=opening, daemon=True).start()


def _seconds(flag: str, text: str) -> int:
    """Parse a duration of at least a second. Raises `ConfigurationError`."""
    from emulator.errors import ConfigurationError
    from extcli.errors import UsageError
    from extcli.output.times import duration

    try:
        seconds = duration(text, bare="s") // 1000
    except UsageError as error:
        raise ConfigurationError(f"{flag}: {error}; {error.fix}") from None
    if seconds < 1:
        raise ConfigurationError(f"{flag}: {text} is too short; give one second or more")
    return seconds


def _preparation(seed: Path | None, *, production: bool) -> Any:
    """Return what puts the seed into the service at its start; `None` without one. Raises `ConfigurationError`."""
    if seed is None:
        return None
    from emulator.errors import BadRequest, ConfigurationError, Forbidden
    from extcli.errors import UsageError
    from extcli.seeds import read

    if production:
        raise ConfigurationError("--seed: --production takes no seed")
    try:
        content = read(seed, os.environ)
    except UsageError as error:
        raise ConfigurationError(": ".join(filter(None, ("--seed", str(error), error.why)))) from None

    async def prepare(service: Any) -> None:
        try:
            seeded = await service.seeds.apply(content.body)
            content.save_tokens([link.refresh for link in seeded.links])
        except BadRequest as error:
            raise ConfigurationError(f"--seed: {content.refused(error.details)}") from None
        except Forbidden as error:
            raise ConfigurationError(f"--seed: {content.name}: clock: {error.detail}") from None
        except UsageError as error:
            raise ConfigurationError(f"--seed: {error}") from None

    return prepare


def _snapshot_files(source: Path | None, target: Path | None) -> Any:
    from emulator.server.snapshot_files import SnapshotFiles
    from extcli.snapshots import files

    return SnapshotFiles(source, target, files.opened, files.written)


def _in_turn(first: Any, second: Any) -> Any:
    async def prepare(service: Any) -> None:
        await first(service)
        if second is not None:
            await second(service)

    return prepare
