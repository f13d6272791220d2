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


Host = Annotated[str, _option("host", "Address to listen on.")]
Port = Annotated[int, _option("port", "Port; 0 takes a free one.", min=0, max=65535)]
Production = Annotated[bool, _option("production", "Verify tokens, serve registered extensions only, no control API.")]
Data = Annotated[
    str,
    _option(
        "data",
        "sqlite:// is in memory, sqlite:///path a file, redis://host:port/number for several nodes.",
        metavar="URL",
    ),
]
NoUpgrade = Annotated[bool, _option("no-upgrade", "Exit if the data has an older format, instead of raising it.")]
Extensions = Annotated[
    Path | None,
    _option("extensions", "TOML file of registered extensions; required with --production.", metavar="FILE"),
]
Leeway = Annotated[
    int,
    _option("leeway", "Seconds of clock skew tolerated in a token's exp and nbf.", min=0, max=3_600, metavar="SECONDS"),
]
Workers = Annotated[int, _option("workers", "Processes that share the port and the data.", min=1, max=64)]
RegisteredOnly = Annotated[bool, _option("registered-only", "Serve registered extensions only, in the sandbox too.")]
Strict = Annotated[bool, _option("strict", "A sandbox with the rules of production: needs --extensions.")]
ChannelStores = Annotated[
    str,
    _option("channel-stores", "One channel store for all extensions, or one for each.", metavar="shared|extension"),
]
PageEvents = Annotated[
    str,
    _option("page-events", "Events for pages after votes and writes to stores.", metavar="all|none"),
]
ControlHost = Annotated[
    list[str] | None,
    _option(
        "control-host",
        "Host name, beside loopback, on which the control API answers; also to clients behind a proxy. Repeatable.",
        metavar="NAME",
    ),
]
MaxBody = Annotated[int, _option("max-body", "Largest body, in KiB.", min=1, metavar="KIB")]
MaxUserMap = Annotated[int, _option("max-user-map", "Largest PATCH of many users, in MiB.", min=1, metavar="MIB")]
MaxCodes = Annotated[int, _option("max-codes", "Largest upload of codes, in MiB.", min=1, metavar="MIB")]
MaxUserList = Annotated[int, _option("max-user-list", "Largest list of users to mark, in MiB.", min=1, metavar="MIB")]
MaxUploads = Annotated[
    int, _option("max-uploads", "Uploads at once of codes, lists of users, seeds and snapshots.", min=1, metavar="N")
]
MaxFrame = Annotated[int, _option("max-frame", "Largest WebSocket message, in KiB.", min=1, metavar="KIB")]
MaxSockets = Annotated[
    int,
    _option("max-sockets", "Authenticated WebSockets of one client id; also those of pages.", min=1, metavar="N"),
]
MaxSubscriptions = Annotated[
    int,
    _option("max-subscriptions", "Topics of one WebSocket; an event uses about six.", min=1, metavar="N"),
]
MaxIds = Annotated[
    int,
    _option(
        "max-ids",
        "Polls of one extension in one channel; also rankings, buffers and JSON stores, each.",
        min=1,
        metavar="N",
    ),
]
CallerRate = Annotated[
    int | None,
    _option(
        "caller-rate",
        "Requests per second of one viewer or game; backends get ten times as many. 0: no limit. "
        "Default: 100 in production, none in the sandbox.",
        min=0,
        metavar="N",
    ),
]
ClientRate = Annotated[
    int,
    _option(
        "client-rate",
        "Requests per second of all callers of one client id, in each process. 0: no limit.",
        min=0,
        metavar="N",
    ),
]
AddressPins = Annotated[
    int | None,
    _option(
        "address-pins",
        "PINs a minute for one address without a token. 0: no limit. Default: 30 in production, none in the sandbox.",
        min=0,
        metavar="N",
    ),
]
AddressPinAttempts = Annotated[
    int | None,
    _option(
        "address-pin-attempts",
        "Wrong PINs a minute of one address. 0: no limit. Default: 10 in production, none in the sandbox.",
        min=0,
        metavar="N",
    ),
]
ClientPinAttempts = Annotated[
    int | None,
    _option(
        "client-pin-attempts",
        "Wrong PINs a minute of one client id; beyond it, each address has five an hour. 0: no limit. "
        "Default: 60 in production, none in the sandbox.",
        min=0,
        metavar="N",
    ),
]
AddressSockets = Annotated[
    int | None,
    _option(
        "address-sockets",
        "Unauthenticated WebSockets of one address. 0: no limit. Default: 50 in production, none in the sandbox.",
        min=0,
        metavar="N",
    ),
]
MaxUnauthenticated = Annotated[
    int | None,
    _option(
        "max-unauthenticated",
        "Unauthenticated WebSockets of all addresses. 0: no limit. Default: 2000 in production, none in the sandbox.",
        min=0,
        metavar="N",
    ),
]
LoginTimeout = Annotated[
    int | None,
    _option(
        "login-timeout",
        "Time for a WebSocket to authenticate. 0: no limit. Default: 600 in production, none in the sandbox.",
        min=0,
        metavar="SECONDS",
    ),
]
AddressPages = Annotated[
    int | None,
    _option(
        "address-pages",
        "WebSockets of pages of one address. 0: no limit. Default: 500 in production, none in the sandbox.",
        min=0,
        metavar="N",
    ),
]
AddressKib = Annotated[
    int | None,
    _option(
        "address-kib",
        "KiB a minute that one address sends before authentication. 0: no limit. "
        "Default: 4096 in production, none in the sandbox.",
        min=0,
        metavar="KIB",
    ),
]
RequestTimeout = Annotated[
    int,
    _option(
        "request-timeout",
        "Time for a request to arrive and its response to be read. 0: no limit.",
        min=0,
        metavar="SECONDS",
    ),
]
Proxy = Annotated[
    list[str] | None,
    _option("proxy", "Address or network of a proxy whose X-Forwarded-For is trusted. Repeatable.", metavar="ADDRESS"),
]
LogLevel = Annotated[str, _option("log-level", "debug, info, warning, error or critical.", metavar="LEVEL")]
LogFormat = Annotated[str, _option("log-format", "Text, or one JSON object per line.", metavar="text|json")]
LogRequests = Annotated[bool, _option("log-requests", "Log each response; costs a third of the throughput.")]
LogAudit = Annotated[
    bool | None,
    _option(
        "log-audit/--no-log-audit",
        "Log what operators and backends change for good. On by default; with `extcli exec`, off.",
    ),
]
Otel = Annotated[
    bool, _option("otel", "Export a span for each request to OTEL_EXPORTER_OTLP_ENDPOINT; needs extcli[otel].")
]
Name = Annotated[
    str | None,
    _option("name", "Run under this name, for `extcli status` and `extcli stop`.", metavar="NAME"),
]
Open = Annotated[bool, _option("open", "Open the dashboard in the browser. Not with --production.")]
NamespaceIdle = Annotated[
    str | None,
    _option(
        "namespace-idle",
        "Drop a namespace after this long without a request or a socket: 1h, 30m, or seconds; 0: never. "
        "24h by default, with --workers over 1 and on Redis never.",
        metavar="DURATION",
    ),
]
Journal = Annotated[
    str,
    _option(
        "journal",
        "Memory for the latest requests, frames and deliveries of all namespaces: 512KiB, 16MiB; 0: none. "
        "Production has none.",
        metavar="SIZE",
    ),
]
Lifeline = Annotated[
    int | None,
    _option(
        "lifeline",
        "Stop when every writer of the pipe with this descriptor has closed it.",
        min=0,
        metavar="FD",
        hidden=True,
    ),
]
Seed = Annotated[
    Path | None,
    _option(
        "seed",
        "Seed whose data are in before the service is ready; see `extcli seed`. Not with --production.",
        metavar="FILE",
    ),
]
TrustSeed = Annotated[
    bool,
    _option("trust-seed", "Let --seed read any file of yours, and write tokens anywhere: not for a seed of others."),
]
Import = Annotated[
    Path | None,
    _option("import", "Snapshot that replaces all data before the service is ready. One worker only.", metavar="FILE"),
]
ExportOnExit = Annotated[
    Path | None,
    _option(
        "export-on-exit",
        "File that a snapshot is saved to at a clean stop. May be the file of --import, which the first run creates.",
        metavar="FILE",
    ),
]


@dataclass(repr=False, eq=False)
class Options:
    """All options of `extcli serve`, with their defaults."""

    host: Host = "127.0.0.1"
    port: Port = 8282
    production: Production = False
    data: Data = "sqlite://"
    extensions: Extensions = None
    leeway: Leeway = 0
    workers: Workers = 1
    registered_only: RegisteredOnly = False
    strict: Strict = False
    channel_stores: ChannelStores = "shared"
    page_events: PageEvents = "all"
    control_host: ControlHost = None
    max_body: MaxBody = 64
    max_user_map: MaxUserMap = 4
    max_codes: MaxCodes = 1024
    max_user_list: MaxUserList = 64
    max_uploads: MaxUploads = 16
    max_frame: MaxFrame = 2048
    max_sockets: MaxSockets = 10_000
    max_subscriptions: MaxSubscriptions = 1_000
    max_ids: MaxIds = 1_000
    caller_rate: CallerRate = None
    client_rate: ClientRate = 0
    address_pins: AddressPins = None
    address_pin_attempts: AddressPinAttempts = None
    client_pin_attempts: ClientPinAttempts = None
    address_sockets: AddressSockets = None
    max_unauthenticated: MaxUnauthenticated = None
    login_timeout: LoginTimeout = None
    address_pages: AddressPages = None
    address_kib: AddressKib = None
    request_timeout: RequestTimeout = 30
    proxy: Proxy = None
    log_level: LogLevel = "info"
    log_format: LogFormat = "text"
    log_requests: LogRequests = False
    log_audit: LogAudit = None
    otel: Otel = False
    namespace_idle: NamespaceIdle = None
    journal: Journal = "16MiB"
    no_upgrade: NoUpgrade = False
    seed: Seed = None
    trust_seed: TrustSeed = False
    import_: Import = None
    export_on_exit: ExportOnExit = None
    name: Name = None
    open_: Open = False
    lifeline: Lifeline = None
