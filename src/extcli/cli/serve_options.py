"""The options of `extcli serve`, each with its variable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

VARIABLES = "EXTCLI_SERVE_"
"""How the variable of each option begins."""


def _option(flag: str, help: str, **settings: Any) -> Any:
    """Return an option with its variable, for example EXTCLI_SERVE_MAX_BODY for max-body."""
    name = flag.partition("/")[0]
    return typer.Option(f"--{flag}", envvar=f"{VARIABLES}{name.replace('-', '_').upper()}", help=help, **settings)


def _limit(flag: str, help: str, in_production: int, unit: str = "N") -> Any:
    """Return the option of a limit that only production has by default."""
    text = f"{help} 0: no limit. Default: {in_production} in production, none in the sandbox."
    return _option(flag, text, min=0, metavar=unit)


@dataclass(repr=False, eq=False)
class Options:
    """All options of `extcli serve`, with their defaults."""

    host: Annotated[str, _option("host", "Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, _option("port", "Port; 0 takes a free one.", min=0, max=65535)] = 8282
    production: Annotated[
        bool, _option("production", "Verify tokens, serve registered extensions only, no control API.")
    ] = False
    data: Annotated[
        str,
        _option(
            "data",
            "sqlite:// is in memory, sqlite:///path a file, redis://host:port/number for several nodes.",
            metavar="URL",
        ),
    ] = "sqlite://"
    extensions: Annotated[
        Path | None,
        _option("extensions", "TOML file of registered extensions; required with --production.", metavar="FILE"),
    ] = None
    leeway: Annotated[
        int,
        _option(
            "leeway", "Seconds of clock skew tolerated in a token's exp and nbf.", min=0, max=3_600, metavar="SECONDS"
        ),
    ] = 0
    workers: Annotated[int, _option("workers", "Processes that share the port and the data.", min=1, max=64)] = 1
    registered_only: Annotated[
        bool, _option("registered-only", "Serve registered extensions only, in the sandbox too.")
    ] = False
    strict: Annotated[bool, _option("strict", "A sandbox with the rules of production: needs --extensions.")] = False
    channel_stores: Annotated[
        str,
        _option("channel-stores", "One channel store for all extensions, or one for each.", metavar="shared|extension"),
    ] = "shared"
    page_events: Annotated[
        str,
        _option("page-events", "Events for pages after votes and writes to stores.", metavar="all|none"),
    ] = "all"
    control_host: Annotated[
        list[str] | None,
        _option(
            "control-host",
            "Host name besides loopback on which the control API answers; also to clients behind a proxy. Repeatable.",
            metavar="NAME",
        ),
    ] = None
    max_body: Annotated[int, _option("max-body", "Largest body, in KiB.", min=1, metavar="KIB")] = 64
    max_user_map: Annotated[
        int, _option("max-user-map", "Largest PATCH of many users, in MiB.", min=1, metavar="MIB")
    ] = 4
    max_codes: Annotated[int, _option("max-codes", "Largest upload of codes, in MiB.", min=1, metavar="MIB")] = 1024
    max_user_list: Annotated[
        int, _option("max-user-list", "Largest list of users to mark, in MiB.", min=1, metavar="MIB")
    ] = 64
    max_uploads: Annotated[
        int,
        _option("max-uploads", "Uploads at once of codes, lists of users, seeds and snapshots.", min=1, metavar="N"),
    ] = 16
    max_frame: Annotated[int, _option("max-frame", "Largest WebSocket message, in KiB.", min=1, metavar="KIB")] = 2048
    max_sockets: Annotated[
        int,
        _option("max-sockets", "Authenticated WebSockets of one client id, including pages.", min=1, metavar="N"),
    ] = 10_000
    max_subscriptions: Annotated[
        int,
        _option("max-subscriptions", "Topics of one WebSocket; an event uses about six.", min=1, metavar="N"),
    ] = 1_000
    max_ids: Annotated[
        int,
        _option(
            "max-ids",
            "Polls of one extension in one channel; also rankings, buffers and JSON stores, each.",
            min=1,
            metavar="N",
        ),
    ] = 1_000
    caller_rate: Annotated[
        int | None,
        _limit("caller-rate", "Requests per second of one viewer or game; backends get ten times as many.", 100),
    ] = None
    client_rate: Annotated[
        int,
        _option(
            "client-rate",
            "Requests per second of all callers of one client id, in each process. 0: no limit.",
            min=0,
            metavar="N",
        ),
    ] = 0
    address_pins: Annotated[
        int | None, _limit("address-pins", "PINs a minute for one address without a token.", 30)
    ] = None
    address_pin_attempts: Annotated[
        int | None, _limit("address-pin-attempts", "Wrong PINs a minute of one address.", 10)
    ] = None
    client_pin_attempts: Annotated[
        int | None,
        _limit(
            "client-pin-attempts", "Wrong PINs a minute of one client id; beyond it, each address has five an hour.", 60
        ),
    ] = None
    address_sockets: Annotated[
        int | None, _limit("address-sockets", "Unauthenticated WebSockets of one address.", 50)
    ] = None
    max_unauthenticated: Annotated[
        int | None, _limit("max-unauthenticated", "Unauthenticated WebSockets of all addresses.", 2000)
    ] = None
    login_timeout: Annotated[
        int | None, _limit("login-timeout", "Time for a WebSocket to authenticate.", 600, "SECONDS")
    ] = None
    address_pages: Annotated[int | None, _limit("address-pages", "WebSockets of pages of one address.", 500)] = None
    address_kib: Annotated[
        int | None, _limit("address-kib", "KiB a minute that one address sends before authentication.", 4096, "KIB")
    ] = None
    request_timeout: Annotated[
        int,
        _option(
            "request-timeout",
            "Time for a request to arrive and its response to be read. 0: no limit.",
            min=0,
            metavar="SECONDS",
        ),
    ] = 30
    proxy: Annotated[
        list[str] | None,
        _option(
            "proxy", "Address or network of a proxy whose X-Forwarded-For is trusted. Repeatable.", metavar="ADDRESS"
        ),
    ] = None
    log_level: Annotated[str, _option("log-level", "debug, info, warning, error or critical.", metavar="LEVEL")] = (
        "info"
    )
    log_format: Annotated[str, _option("log-format", "Text, or one JSON object per line.", metavar="text|json")] = (
        "text"
    )
    log_requests: Annotated[bool, _option("log-requests", "Log each response; costs a third of the throughput.")] = (
        False
    )
    log_audit: Annotated[
        bool | None,
        _option(
            "log-audit/--no-log-audit",
            "Log what operators and backends change for good. On by default; with `extcli exec`, off.",
        ),
    ] = None
    otel: Annotated[
        bool, _option("otel", "Export a span for each request to OTEL_EXPORTER_OTLP_ENDPOINT; needs extcli[otel].")
    ] = False
    namespace_idle: Annotated[
        str | None,
        _option(
            "namespace-idle",
            "Drop a namespace after this long without a request or a socket: 1h, 30m, or seconds; 0: never. "
            "24h by default, with --workers over 1 and on Redis never.",
            metavar="DURATION",
        ),
    ] = None
    journal: Annotated[
        str,
        _option(
            "journal",
            "Memory for the latest requests, frames and deliveries of all namespaces: 512KiB, 16MiB; 0: none. "
            "Production has none.",
            metavar="SIZE",
        ),
    ] = "16MiB"
    no_upgrade: Annotated[
        bool, _option("no-upgrade", "Exit if the data has an older format, instead of raising it.")
    ] = False
    seed: Annotated[
        Path | None,
        _option(
            "seed",
            "Seed whose data are in before the service is ready; see `extcli seed`. Not with --production.",
            metavar="FILE",
        ),
    ] = None
    trust_seed: Annotated[
        bool,
        _option(
            "trust-seed", "Let --seed read any file of yours, and write tokens anywhere: not for a seed of others."
        ),
    ] = False
    import_: Annotated[
        Path | None,
        _option(
            "import", "Snapshot that replaces all data before the service is ready. One worker only.", metavar="FILE"
        ),
    ] = None
    export_on_exit: Annotated[
        Path | None,
        _option(
            "export-on-exit",
            "File that a snapshot is saved to at a clean stop. May be the file of --import, which "
            "the first run creates.",
            metavar="FILE",
        ),
    ] = None
    name: Annotated[
        str | None,
        _option("name", "Run under this name, for `extcli status` and `extcli stop`.", metavar="NAME"),
    ] = None
    open_: Annotated[bool, _option("open", "Open the dashboard in the browser. Not with --production.")] = False
    lifeline: Annotated[
        int | None,
        _option(
            "lifeline",
            "Stop when every writer of the pipe with this descriptor has closed it.",
            min=0,
            metavar="FD",
            hidden=True,
        ),
    ] = None
