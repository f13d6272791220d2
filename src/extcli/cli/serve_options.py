"""The options of `extcli serve`, each with its variable."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any

import typer

VARIABLES = "EXTCLI_SERVE_"
"""How the variable of each option begins."""


def _option(value: str, help: str, default: Any = None, **settings: Any) -> Any:
    """Declare an option, which is named after its field."""
    return typer.Option(default, metavar=value, help=help, **settings)


def _flag(help: str, default: bool | None = False) -> Any:
    return typer.Option(default, help=help)


def _limit(help: str, in_production: int, unit: str = "N") -> Any:
    """Declare a limit that only production has by default."""
    text = f"{help} 0: no limit. Default: {in_production} in production, none in the sandbox."
    return _option(unit, text, min=0)


@dataclass(repr=False, eq=False)
class Options:
    """All options of `extcli serve`, with their defaults."""

    host: str = _option("HOST", "Address to listen on; a name means all its addresses. Default: 127.0.0.1 and ::1.", "")
    port: int = _option("PORT", "Port; 0 takes a free one.", 8282, min=0, max=65535)
    tls: bool = _flag("Serve https and wss, with a certificate made by extcli; line 2 says how to trust it.")
    tls_cert: Path | None = _option("FILE", "Serve https and wss with this certificate, in PEM.")
    tls_key: Path | None = _option("FILE", "The unencrypted key of --tls-cert, in PEM.")
    root_path: str = _option("PATH", "What all paths begin with behind a proxy, such as /muxy, which may strip it.", "")
    production: bool = _flag("Verify tokens, serve registered extensions only, no control API.")
    data: str = _option(
        "URL",
        "sqlite:// in memory, sqlite:///path, redis://host:port/number; passwords in EXTCLI_SERVE_DATA.",
        "sqlite://",
    )
    extensions: Path | None = _option("FILE", "TOML file of registered extensions; required with --production.")
    leeway: int = _option("SECONDS", "Seconds of clock skew tolerated in a token's exp and nbf.", 0, min=0, max=3_600)
    registered_only: bool = _flag("Serve registered extensions only, in the sandbox too.")
    strict: bool = _flag("A sandbox with the rules of production: needs --extensions.")
    channel_stores: str = _option("shared|extension", "One channel store for all extensions, or for each.", "shared")
    page_events: str = _option("all|none", "Events for pages after votes and writes to stores.", "all")
    control_host: list[str] | None = _option(
        "NAME", "Host besides loopback on which the control API answers, also to clients behind a proxy. Repeatable."
    )
    max_body: int = _option("KIB", "Largest body, in KiB.", 64, min=1)
    max_user_map: int = _option("MIB", "Largest PATCH of many users, in MiB.", 4, min=1)
    max_codes: int = _option("MIB", "Largest upload of codes, in MiB.", 1024, min=1)
    max_user_list: int = _option("MIB", "Largest list of users to mark, in MiB.", 64, min=1)
    max_uploads: int = _option("N", "Uploads at once of codes, lists of users, seeds and snapshots.", 16, min=1)
    max_frame: int = _option("KIB", "Largest socket message, in KiB.", 2048, min=1)
    max_sockets: int = _option("N", "Game sockets of a client id; as many sockets of all pages.", 10_000, min=1)
    max_subscriptions: int = _option("N", "Topics of one socket; an event uses about six.", 1_000, min=1)
    max_ids: int = _option(
        "N", "Polls of owners in one channel; as many of viewers, rankings, buffers, JSON stores.", 1_000, min=1
    )
    caller_rate: int | None = _limit("Requests per second of one viewer or game; backends get ten times as many.", 100)
    client_rate: int = _option("N", "Requests per second of one client id, in each process. 0: no limit.", 0, min=0)
    address_pins: int | None = _limit("PINs a minute for one address without a token.", 30)
    address_pin_attempts: int | None = _limit("Wrong PINs a minute of one address.", 10)
    client_pin_attempts: int | None = _limit("Wrong PINs a minute of one client id; then five an hour per address.", 60)
    address_sockets: int | None = _limit("Game sockets of one user, and of one address before authentication.", 50)
    max_unauthenticated: int | None = _limit("Game sockets of all addresses before authentication.", 2000)
    login_timeout: int | None = _limit("Time for a game socket to authenticate.", 600, "SECONDS")
    address_connections: int | None = _limit("HTTP connections of one address.", 500)
    address_pages: int | None = _limit("Page sockets of one address, and game sockets of viewers there.", 500)
    address_kib: int | None = _limit("KiB a minute that one address sends before authentication.", 4096, "KIB")
    request_timeout: int = _option("SECONDS", "Time to receive a request and send a response. 0: no limit.", 30, min=0)
    proxy: list[str] | None = _option(
        "ADDRESS", "Trust X-Forwarded-For and -Proto of this proxy or network. Repeatable."
    )
    log_level: str = _option("LEVEL", "debug, info, warning, error or critical; audit lines ignore it.", "info")
    log_format: str = _option("text|json", "Text, or one JSON object per line.", "text")
    log_requests: bool = _flag("Log each response; costs a third of the throughput.")
    log_audit: bool | None = _flag(
        "Log lasting changes by operators and backends. On by default; off in `extcli exec`.", None
    )
    otel: bool = _flag("Export a span for each request to OTEL_EXPORTER_OTLP_ENDPOINT; needs extcli[otel].")
    namespace_idle: str | None = _option(
        "DURATION", "Drop a namespace unused for this long: 1h, 30m; 0: never [24h; on Redis never]."
    )
    journal: str = _option("SIZE", "Memory for all journals: 512KiB, 16MiB; 0: none. Production has none.", "16MiB")
    seed: Path | None = _option("FILE", "Seed to apply before the service is ready. Not with --production.")
    trust_seed: bool = _flag("Let --seed read any file of yours, and write tokens anywhere: not for a seed of others.")
    import_: Path | None = _option("FILE", "Snapshot that replaces all data before the service is ready.")
    export_on_exit: Path | None = _option(
        "FILE", "Snapshot to save at a clean stop; may be that of --import, even a new file."
    )
    name: str | None = _option("NAME", "Run under this name, for `extcli status` and `extcli stop`.")
    open_: bool = _flag("Open the dashboard in the browser. Not with --production.")
    lifeline: int | None = _option("FD", "Stop when every writer of this pipe has closed it.", min=0, hidden=True)


def _name(field: Field[Any]) -> None:
    """Give an option its name and its variable, for example --max-body and EXTCLI_SERVE_MAX_BODY for `max_body`."""
    name = field.name.rstrip("_")
    flag = name.replace("_", "-")
    has_both_forms = field.type == "bool | None"
    option: Any = field.default
    option.param_decls = (f"--{flag}/--no-{flag}" if has_both_forms else f"--{flag}",)
    option.envvar = VARIABLES + name.upper()


for _each in fields(Options):
    _name(_each)
