"""The options of `extcli serve`, each with its variable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extcli.cli import options

VARIABLES = "EXTCLI_SERVE_"
"""How the variable of each option begins."""


def _option(names: str, help: str, default: Any = None, **settings: Any) -> Any:
    return options.option(f"--{names}", help, default, envvar=_variable(names.split()[0]), **settings)


def _flag(flag: str, help: str, default: bool | None = False) -> Any:
    return options.flag(f"--{flag}", help, default, envvar=_variable(flag))


def _variable(flag: str) -> str:
    """Return the variable of an option, for example EXTCLI_SERVE_MAX_BODY for max-body."""
    return VARIABLES + flag.partition("/")[0].replace("-", "_").upper()


def _limit(flag: str, help: str, in_production: int, unit: str = "N") -> Any:
    """Return the option of a limit that only production has by default."""
    text = f"{help} 0: no limit. Default: {in_production} in production, none in the sandbox."
    return _option(f"{flag} {unit}", text, min=0)


@dataclass(repr=False, eq=False)
class Options:
    """All options of `extcli serve`, with their defaults."""

    host: str = _option(
        "host HOST", "Address to listen on; a name means all its addresses. Default: 127.0.0.1 and ::1.", ""
    )
    port: int = _option("port PORT", "Port; 0 takes a free one.", 8282, min=0, max=65535)
    tls: bool = _flag(
        "tls", "Serve https and wss, with a certificate that extcli makes; the second line says how to trust it."
    )
    tls_cert: Path | None = _option("tls-cert FILE", "Serve https and wss with this certificate, in PEM.")
    tls_key: Path | None = _option("tls-key FILE", "The unencrypted key of --tls-cert, in PEM.")
    root_path: str = _option(
        "root-path PATH", "What all paths begin with behind a proxy, such as /muxy, which may strip it.", ""
    )
    production: bool = _flag("production", "Verify tokens, serve registered extensions only, no control API.")
    data: str = _option(
        "data URL",
        "sqlite:// is in memory, sqlite:///path a file, redis://host:port/number for several nodes. Set the variable "
        "EXTCLI_SERVE_DATA if the URL has a password.",
        "sqlite://",
    )
    extensions: Path | None = _option(
        "extensions FILE", "TOML file of registered extensions; required with --production."
    )
    leeway: int = _option(
        "leeway SECONDS", "Seconds of clock skew tolerated in a token's exp and nbf.", 0, min=0, max=3_600
    )
    registered_only: bool = _flag("registered-only", "Serve registered extensions only, in the sandbox too.")
    strict: bool = _flag("strict", "A sandbox with the rules of production: needs --extensions.")
    channel_stores: str = _option(
        "channel-stores shared|extension", "One channel store for all extensions, or one for each.", "shared"
    )
    page_events: str = _option("page-events all|none", "Events for pages after votes and writes to stores.", "all")
    control_host: list[str] | None = _option(
        "control-host NAME",
        "Host name besides loopback on which the control API answers; also to clients behind a proxy. Repeatable.",
    )
    max_body: int = _option("max-body KIB", "Largest body, in KiB.", 64, min=1)
    max_user_map: int = _option("max-user-map MIB", "Largest PATCH of many users, in MiB.", 4, min=1)
    max_codes: int = _option("max-codes MIB", "Largest upload of codes, in MiB.", 1024, min=1)
    max_user_list: int = _option("max-user-list MIB", "Largest list of users to mark, in MiB.", 64, min=1)
    max_uploads: int = _option(
        "max-uploads N", "Uploads at once of codes, lists of users, seeds and snapshots.", 16, min=1
    )
    max_frame: int = _option("max-frame KIB", "Largest WebSocket message, in KiB.", 2048, min=1)
    max_sockets: int = _option(
        "max-sockets N", "Authenticated WebSockets of one client id; also those of all pages.", 10_000, min=1
    )
    max_subscriptions: int = _option(
        "max-subscriptions N", "Topics of one WebSocket; an event uses about six.", 1_000, min=1
    )
    max_ids: int = _option(
        "max-ids N",
        "Polls of owners in one channel, and as many of viewers; also rankings, buffers and JSON stores, each.",
        1_000,
        min=1,
    )
    caller_rate: int | None = _limit(
        "caller-rate", "Requests per second of one viewer or game; backends get ten times as many.", 100
    )
    client_rate: int = _option(
        "client-rate N", "Requests per second of all callers of one client id, in each process. 0: no limit.", 0, min=0
    )
    address_pins: int | None = _limit("address-pins", "PINs a minute for one address without a token.", 30)
    address_pin_attempts: int | None = _limit("address-pin-attempts", "Wrong PINs a minute of one address.", 10)
    client_pin_attempts: int | None = _limit(
        "client-pin-attempts", "Wrong PINs a minute of one client id; beyond it, each address has five an hour.", 60
    )
    address_sockets: int | None = _limit(
        "address-sockets", "WebSockets of one user, and of one address unauthenticated.", 50
    )
    max_unauthenticated: int | None = _limit(
        "max-unauthenticated", "Unauthenticated WebSockets of all addresses.", 2000
    )
    login_timeout: int | None = _limit("login-timeout", "Time for a WebSocket to authenticate.", 600, "SECONDS")
    address_connections: int | None = _limit("address-connections", "HTTP connections of one address.", 500)
    address_pages: int | None = _limit("address-pages", "WebSockets of pages of one address; also of viewers.", 500)
    address_kib: int | None = _limit(
        "address-kib", "KiB a minute that one address sends before authentication.", 4096, "KIB"
    )
    request_timeout: int = _option(
        "request-timeout SECONDS", "Time for a request to arrive and its response to be read. 0: no limit.", 30, min=0
    )
    proxy: list[str] | None = _option(
        "proxy ADDRESS", "Address or network of a proxy whose X-Forwarded-For and -Proto are trusted. Repeatable."
    )
    log_level: str = _option("log-level LEVEL", "debug, info, warning, error or critical.", "info")
    log_format: str = _option("log-format text|json", "Text, or one JSON object per line.", "text")
    log_requests: bool = _flag("log-requests", "Log each response; costs a third of the throughput.")
    log_audit: bool | None = _flag(
        "log-audit/--no-log-audit",
        "Log what operators and backends change for good. On by default; with `extcli exec`, off.",
        None,
    )
    otel: bool = _flag("otel", "Export a span for each request to OTEL_EXPORTER_OTLP_ENDPOINT; needs extcli[otel].")
    namespace_idle: str | None = _option(
        "namespace-idle DURATION",
        "Drop a namespace after this long without a request or a socket: 1h, 30m, or seconds; 0: never. "
        "24h by default, on Redis never.",
    )
    journal: str = _option(
        "journal SIZE",
        "Memory for the latest requests, frames and deliveries of all namespaces: 512KiB, 16MiB; 0: none. "
        "Production has none.",
        "16MiB",
    )
    seed: Path | None = _option(
        "seed FILE", "Seed whose data are in before the service is ready; see `extcli seed`. Not with --production."
    )
    trust_seed: bool = _flag(
        "trust-seed", "Let --seed read any file of yours, and write tokens anywhere: not for a seed of others."
    )
    import_: Path | None = _option("import FILE", "Snapshot that replaces all data before the service is ready.")
    export_on_exit: Path | None = _option(
        "export-on-exit FILE",
        "File that a snapshot is saved to at a clean stop. May be the file of --import, which the first run creates.",
    )
    name: str | None = _option("name NAME", "Run under this name, for `extcli status` and `extcli stop`.")
    open_: bool = _flag("open", "Open the dashboard in the browser. Not with --production.")
    lifeline: int | None = _option(
        "lifeline FD", "Stop when every writer of the pipe with this descriptor has closed it.", min=0, hidden=True
    )
