"""The options of `extcli serve`, each with its variable."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any

import typer

VARIABLE_PREFIX = "EXTCLI_SERVE_"
"""How the variable of each option begins."""


def _option(value: str, help: str, default: Any = None, **settings: Any) -> Any:
    """Declare an option, which is named after its field."""
    return typer.Option(default, metavar=value, help=help, **settings)


def _flag(help: str, default: bool | None = False) -> Any:
    return typer.Option(default, help=help)


def _limit(help: str, in_production: int, unit: str = "N") -> Any:
    """Declare a limit that only production has by default."""
    text = f"{help} 0: no limit. Default: {in_production} in production, 0 in the sandbox."
    return _option(unit, text, min=0)


@dataclass(repr=False, eq=False)
class ServeOptions:
    """All options of `extcli serve`, with their defaults."""

    host: str = _option("HOST", "Address to listen on; a name means all its addresses. Default: 127.0.0.1 and ::1.", "")
    port: int = _option("PORT", "Port to listen on; 0 chooses a free port.", 8282, min=0, max=65535)
    tls: bool = _flag("Serve https and wss with a certificate that extcli makes; output line 2 says how to trust it.")
    tls_cert: Path | None = _option("FILE", "Serve https and wss with this PEM certificate.")
    tls_key: Path | None = _option("FILE", "The PEM key of --tls-cert, unencrypted.")
    root_path: str = _option("PATH", "Prefix of all paths behind a proxy, such as /muxy. The proxy may strip it.", "")
    production: bool = _flag("Verify tokens, serve only registered extensions, and have no control API.")
    data: str = _option(
        "URL",
        "sqlite:// in memory, sqlite:///path, redis://host:port/number. For a password, set EXTCLI_SERVE_DATA.",
        "sqlite://",
    )
    extensions: Path | None = _option("FILE", "TOML file of registered extensions; required with --production.")
    leeway: int = _option("SECONDS", "Seconds of clock skew tolerated in a token's exp and nbf.", 0, min=0, max=3_600)
    registered_only: bool = _flag("Serve only registered extensions, even in the sandbox.")
    strict: bool = _flag("Apply the rules of production in the sandbox. Needs --extensions.")
    channel_stores: str = _option("shared|extension", "Whether all extensions share channel stores.", "shared")
    page_events: str = _option("all|none", "Whether pages receive events after votes and writes to stores.", "all")
    control_host: list[str] | None = _option(
        "NAME", "Allow the control API at this host name too, even for clients behind a proxy. Repeatable."
    )
    max_body: int = _option("KIB", "Largest request body, in KiB.", 64, min=1)
    max_user_map: int = _option("MIB", "Largest PATCH body for many users, in MiB.", 4, min=1)
    max_codes: int = _option("MIB", "Largest upload of codes, in MiB.", 1024, min=1)
    max_user_list: int = _option("MIB", "Largest list of users to mark for codes, in MiB.", 64, min=1)
    max_uploads: int = _option("N", "At most N uploads at once: codes, user lists, seeds, snapshots.", 16, min=1)
    max_frame: int = _option("KIB", "Largest socket message, in KiB.", 2048, min=1)
    max_sockets: int = _option("N", "At most N game sockets per client id, and N page sockets in all.", 10_000, min=1)
    max_subscriptions: int = _option("N", "At most N topics per socket; one event counts as about six.", 1_000, min=1)
    max_ids: int = _option(
        "N", "At most N polls per channel, plus N by viewers; same for rankings, buffers, JSON stores.", 1_000, min=1
    )
    caller_rate: int | None = _limit("At most N requests per second per viewer or game, tenfold per backend.", 100)
    client_rate: int = _option("N", "At most N requests per second of a client id, per process. 0: no limit.", 0, min=0)
    address_pins: int | None = _limit("At most N PINs per minute for an address without a token.", 30)
    address_pin_attempts: int | None = _limit("At most N wrong PINs per minute from one address.", 10)
    client_pin_attempts: int | None = _limit(
        "At most N wrong PINs per minute for a client id, then 5 per hour from each address.", 60
    )
    address_sockets: int | None = _limit("At most N game sockets per user, and per address before authentication.", 50)
    max_unauthenticated: int | None = _limit("At most N unauthenticated game sockets in all.", 2000)
    login_timeout: int | None = _limit("Time limit for a game socket to authenticate.", 600, "SECONDS")
    address_connections: int | None = _limit("At most N HTTP connections per address.", 500)
    address_pages: int | None = _limit("At most N page sockets, and N game sockets of viewers, per address.", 500)
    address_kib: int | None = _limit("The most KiB per minute from one address before authentication.", 4096, "KIB")
    request_timeout: int = _option("SECONDS", "Time to receive a request and send a response. 0: no limit.", 30, min=0)
    proxy: list[str] | None = _option(
        "ADDRESS", "Trust X-Forwarded-For and X-Forwarded-Proto from this proxy or network. Repeatable."
    )
    log_level: str = _option(
        "LEVEL", "Lowest level to log: debug, info, warning, error or critical. Audit lines ignore the level.", "info"
    )
    log_format: str = _option("text|json", "Log as text, or as one JSON object per line.", "text")
    log_requests: bool = _flag("Log each response. This lowers the throughput by a third.")
    log_audit: bool | None = _flag(
        "Log changes that operators and backends make. On by default; off in `extcli exec`.", None
    )
    otel: bool = _flag("Export a span for each request to OTEL_EXPORTER_OTLP_ENDPOINT; needs extcli[otel].")
    namespace_idle: str | None = _option(
        "DURATION", "Delete namespaces unused for this long, such as 30m; 0: never [24h; never on Redis]."
    )
    journal: str = _option("SIZE", "Memory for all journals, such as 512KiB; 0: none. Production has none.", "16MiB")
    seed: Path | None = _option("FILE", "Apply this seed before the service is ready. Not with --production.")
    trust_seed: bool = _flag("Let --seed read any of your files and write tokens anywhere. Only for your own seeds.")
    import_: Path | None = _option("FILE", "Replace all data with this snapshot before the service is ready.")
    export_on_exit: Path | None = _option(
        "FILE", "Save a snapshot to this file at a clean stop. It may be the file of --import."
    )
    name: str | None = _option("NAME", "Run under this name, for `extcli status` and `extcli stop`.")
    open_: bool = _flag("Open the dashboard in the browser. Not with --production.")
    lifeline: int | None = _option("FD", "Stop when every writer of this pipe has closed it.", min=0, hidden=True)


def _set_name_and_variable(field: Field[Any]) -> None:
    """Give an option its name and its variable, for example --max-body and EXTCLI_SERVE_MAX_BODY for `max_body`."""
    name = field.name.rstrip("_")
    flag = name.replace("_", "-")
    has_both_forms = field.type == "bool | None"
    option: Any = field.default
    option.param_decls = (f"--{flag}/--no-{flag}" if has_both_forms else f"--{flag}",)
    option.envvar = VARIABLE_PREFIX + name.upper()


for _each in fields(ServeOptions):
    _set_name_and_variable(_each)
