"""`extcli serve`: starts the service. Only this command imports it."""

from __future__ import annotations

import inspect
import logging
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from emulator.config.settings import KIB, MIB, Limits, read_settings
from emulator.errors import ConfigurationError, EngineError
from emulator.observability.logs import LogSettings
from emulator.server import run as server
from extcli.cli.shared_options import Command
from extcli.errors import ExitCode

_VARIABLES = "EXTCLI_SERVE_"


class ServeCommand(Command):
    """Reports usage errors on one line, like every other configuration error of the service."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            message: str = error.format_message()
            typer.echo(f"extcli serve: {' '.join(message.split())}", err=True)
            raise typer.Exit(ExitCode.USAGE) from None


def _option(flag: str, help: str, **settings: Any) -> Any:
    """Return an option with its variable, for example EXTCLI_SERVE_MAX_BODY for max-body."""
    return typer.Option(f"--{flag}", envvar=f"{_VARIABLES}{flag.replace('-', '_').upper()}", help=help, **settings)


def _warn_of_unknown_variables() -> None:
    """Log each variable that looks like an option but is none, for example because of a typo."""
    known = [name.upper() for name in inspect.signature(serve).parameters]
    for variable in sorted(each for each in os.environ if each.startswith(_VARIABLES)):
        name = variable.removeprefix(_VARIABLES)
        if name not in known:
            hint = "".join(f"; did you mean {_VARIABLES}{match}?" for match in get_close_matches(name, known, 1))
            logging.getLogger("emulator").warning("%s: unknown option%s", variable, hint)


app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("serve", cls=ServeCommand)
def serve(
    host: Annotated[str, _option("host", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, _option("port", "Port; 0 takes a free one.", min=0, max=65535)] = 8282,
    production: Annotated[
        bool, _option("production", "Verify tokens, serve registered extensions only, no control API.")
    ] = False,
    data: Annotated[
        str,
        _option(
            "data",
            "sqlite:// is in memory, sqlite:///path a file, redis://host:port/number for several nodes.",
            metavar="URL",
        ),
    ] = "sqlite://",
    extensions: Annotated[
        Path | None,
        _option("extensions", "TOML file of registered extensions; required with --production.", metavar="FILE"),
    ] = None,
    leeway: Annotated[
        int,
        _option(
            "leeway", "Seconds of clock skew tolerated in a token's exp and nbf.", min=0, max=3_600, metavar="SECONDS"
        ),
    ] = 0,
    workers: Annotated[int, _option("workers", "Processes that share the port and the data.", min=1, max=64)] = 1,
    registered_only: Annotated[
        bool, _option("registered-only", "Serve registered extensions only, in the sandbox too.")
    ] = False,
    channel_stores: Annotated[
        str,
        _option("channel-stores", "One channel store for all extensions, or one for each.", metavar="shared|extension"),
    ] = "shared",
    page_events: Annotated[
        str,
        _option("page-events", "Events for pages after votes and writes to stores.", metavar="all|none"),
    ] = "all",
    control_host: Annotated[
        list[str] | None,
        _option(
            "control-host",
            "Host name, beside loopback, on which the control API answers; also to clients behind a proxy. Repeatable.",
            metavar="NAME",
        ),
    ] = None,
    max_body: Annotated[int, _option("max-body", "Largest body, in KiB.", min=1, metavar="KIB")] = 64,
    max_user_map: Annotated[
        int, _option("max-user-map", "Largest PATCH of many users, in MiB.", min=1, metavar="MIB")
    ] = 4,
    max_codes: Annotated[int, _option("max-codes", "Largest upload of codes, in MiB.", min=1, metavar="MIB")] = 1024,
    max_user_list: Annotated[
        int, _option("max-user-list", "Largest list of users to mark, in MiB.", min=1, metavar="MIB")
    ] = 64,
    max_frame: Annotated[int, _option("max-frame", "Largest WebSocket message, in KiB.", min=1, metavar="KIB")] = 2048,
    max_sockets: Annotated[
        int,
        _option("max-sockets", "Authenticated WebSockets of one client id; also those of pages.", min=1, metavar="N"),
    ] = 10_000,
    max_subscriptions: Annotated[
        int,
        _option("max-subscriptions", "Topics of one WebSocket; an event uses about six.", min=1, metavar="N"),
    ] = 1_000,
    max_ids: Annotated[
        int,
        _option(
            "max-ids",
            "Polls of one extension in one channel; also rankings, buffers and JSON stores, each.",
            min=1,
            metavar="N",
        ),
    ] = 1_000,
    caller_rate: Annotated[
        int | None,
        _option(
            "caller-rate",
            "Requests per second of one viewer or game; backends get ten times as many. 0: no limit. "
            "Default: 100 in production, none in the sandbox.",
            min=0,
            metavar="N",
        ),
    ] = None,
    client_rate: Annotated[
        int,
        _option(
            "client-rate",
            "Requests per second of all callers of one client id, in each process. 0: no limit.",
            min=0,
            metavar="N",
        ),
    ] = 0,
    address_pins: Annotated[
        int | None,
        _option(
            "address-pins",
            "PINs a minute for one address without a token. 0: no limit. "
            "Default: 30 in production, none in the sandbox.",
            min=0,
            metavar="N",
        ),
    ] = None,
    address_pin_attempts: Annotated[
        int | None,
        _option(
            "address-pin-attempts",
            "Wrong PINs a minute of one address. 0: no limit. Default: 10 in production, none in the sandbox.",
            min=0,
            metavar="N",
        ),
    ] = None,
    client_pin_attempts: Annotated[
        int | None,
        _option(
            "client-pin-attempts",
            "Wrong PINs a minute of one client id; beyond it, each address has five an hour. 0: no limit. "
            "Default: 60 in production, none in the sandbox.",
            min=0,
            metavar="N",
        ),
    ] = None,
    address_sockets: Annotated[
        int | None,
        _option(
            "address-sockets",
            "Unauthenticated WebSockets of one address. 0: no limit. Default: 50 in production, none in the sandbox.",
            min=0,
            metavar="N",
        ),
    ] = None,
    max_unauthenticated: Annotated[
        int | None,
        _option(
            "max-unauthenticated",
            "Unauthenticated WebSockets of all addresses. 0: no limit. "
            "Default: 2000 in production, none in the sandbox.",
            min=0,
            metavar="N",
        ),
    ] = None,
    login_timeout: Annotated[
        int | None,
        _option(
            "login-timeout",
            "Time for a WebSocket to authenticate. 0: no limit. Default: 600 in production, none in the sandbox.",
            min=0,
            metavar="SECONDS",
        ),
    ] = None,
    address_pages: Annotated[
        int | None,
        _option(
            "address-pages",
            "WebSockets of pages of one address. 0: no limit. Default: 500 in production, none in the sandbox.",
            min=0,
            metavar="N",
        ),
    ] = None,
    address_kib: Annotated[
        int | None,
        _option(
            "address-kib",
            "KiB a minute that one address sends before authentication. 0: no limit. "
            "Default: 4096 in production, none in the sandbox.",
            min=0,
            metavar="KIB",
        ),
    ] = None,
    request_timeout: Annotated[
        int,
        _option(
            "request-timeout",
            "Time for a request to arrive and its response to be read. 0: no limit.",
            min=0,
            metavar="SECONDS",
        ),
    ] = 30,
    proxy: Annotated[
        list[str] | None,
        _option(
            "proxy", "Address or network of a proxy whose X-Forwarded-For is trusted. Repeatable.", metavar="ADDRESS"
        ),
    ] = None,
    log_level: Annotated[
        str, _option("log-level", "debug, info, warning, error or critical.", metavar="LEVEL")
    ] = "info",
    log_format: Annotated[
        str, _option("log-format", "Text, or one JSON object per line.", metavar="text|json")
    ] = "text",
    log_requests: Annotated[
        bool, _option("log-requests", "Log each response; costs a third of the throughput.")
    ] = False,
    otel: Annotated[
        bool, _option("otel", "Export a span for each request to OTEL_EXPORTER_OTLP_ENDPOINT; needs extcli[otel].")
    ] = False,
) -> None:
    """Start the service.

    By default it is a sandbox with its data in memory. The first line on standard output is
    `listening on URL`; logs go to standard error. SIGINT and SIGTERM stop it cleanly.
    SIGHUP reloads --extensions. In a variable, several values are separated by spaces.

    Example: extcli serve --port 0 --data sqlite:///srv/extension.db
    """
    try:
        logs = LogSettings(log_level, log_format, log_requests)
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
        )
        server.run(settings, host, port, workers)
    except (ConfigurationError, EngineError) as error:
        typer.echo(f"extcli serve: {error}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None
    except Exception:
        # Logged, unlike a bug in another command: the log leaves out exception messages, which may quote data.
        logging.getLogger("emulator").exception("this is a bug in extcli; please report it with the lines below")
        raise typer.Exit(ExitCode.BUG) from None
