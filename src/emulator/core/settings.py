"""The settings of a service, from the options of `extcli serve` (`docs/serve.md`)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from emulator.contract.names import CONTROL_TOKEN
from emulator.core.environment import PRODUCTION, SANDBOX, STRICT, AnonymousLimits, Environment
from emulator.core.errors import ConfigurationError
from emulator.core.extensions import Extension, read_extensions
from emulator.core.limits import parse_address
from emulator.core.observability.logs import LogSettings

KIB = 1024
MIB = 1024 * KIB
MIN_JOURNAL = 64 * KIB
"""Bytes of the smallest journal; an entry has up to 12 KiB."""
DEFAULT_NAMESPACE_IDLE = 24 * 60 * 60
"""Seconds without use after which a namespace is dropped, by default: no run of tests takes a day."""
_SIZE_UNITS = {"": 1, "KiB": KIB, "MiB": MIB, "GiB": 1024 * MIB}
_SIZE_PATTERN = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>|[KMG]iB)")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")  # it must fit in a cookie
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")
_SERVICE_PATH = re.compile(r"/(v1|ws|app|schema)(/|$)|.*/_(emulator|ns)(/|$)")
"""What a path of the service itself may be, and what clients take for one."""
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")


@dataclass(frozen=True)
class Limits:
    """Limits on requests, connections and data."""

    body: int = 64 * KIB
    """Bytes in a request body (ruling W8)."""
    user_map: int = 4 * MIB
    """Bytes in a PATCH of many users."""
    codes: int = 1024 * MIB
    """Bytes in a PUT of codes, which is streamed."""
    user_list: int = 64 * MIB
    """Bytes in a list of users to mark, which is streamed."""
    seed: int = 64 * MIB
    """Bytes in a seed."""
    snapshot: int = 8 * 1024 * MIB
    """Bytes in a snapshot that is loaded, which is streamed."""
    uploads: int = 16
    """Uploads that a process takes at once: of codes, lists of users, seeds and snapshots."""
    frame: int = 2 * MIB
    """Bytes in one socket message (ruling X3)."""
    outbox: int = 1 * MIB
    """Bytes buffered for a slow socket before it is closed (ruling B4)."""
    topics: int = 1_000
    """Subscriptions of one socket."""
    namespaces: int = 2_000
    """Open namespaces."""
    caller_rate: int | None = None
    """Requests per second of one caller; 0 means no limit, `None` the environment's default."""
    client_rate: int = 0
    """Requests per second of one client id; 0 means no limit.

    Off by default: a limit that one process can reach would throttle the crowd of a poll, and any other would do
    nothing.
    """
    sockets: int = 10_000
    """Open game sockets of one client id, at most three quarters of them of viewers; also open sockets of pages."""
    ids: int = 1_000
    """Ids of each kind (polls, rankings, buffers, JSON stores) that owners create for one extension in one channel.

    Viewers may begin as many, one viewer a quarter of these.
    """
    request_timeout: int = 30
    """Seconds for a request to arrive and its response to be read; 0 means no limit."""
    anonymous: AnonymousLimits | None = None
    """Limits on callers without a token; `None` is the environment's default."""


@dataclass(frozen=True)
class Settings:
    """The settings of one service."""

    environment: Environment = SANDBOX
    data: str = "sqlite://"
    extensions: Mapping[str, Extension] = field(default_factory=dict)
    """Registered at the start, by client id."""
    extensions_file: Path | None = None
    """The file they came from; SIGHUP reads it again."""
    leeway: int = 0
    """Tolerated clock skew of token signers, in ms."""
    registered_only: bool = False
    """Serve only registered client ids, in the sandbox too. Production always does."""
    channel_stores_per_extension: bool = False
    """Keep a channel store per extension, instead of one for all extensions in the channel (ruling S6)."""
    namespace_idle: float | None = None
    """Seconds without use after which a namespace is dropped; 0 is never.

    `None` is `DEFAULT_NAMESPACE_IDLE`, and never if other processes use the data: this one does not see their requests.
    """
    journal: int = 16 * MIB
    """Bytes of the journals of all namespaces together; 0 keeps none. Production has no journal."""
    page_events: bool = True
    """Send pages the automatic events (ruling B5)."""
    root_path: str = ""
    """What all paths begin with behind a proxy, such as `/muxy`; it may have stripped that from a request."""
    control_hosts: tuple[str, ...] = ()
    """Host names besides loopback on which the control API answers."""
    control_token: str = field(default="", repr=False)
    """Admits callers on other machines to the control API; none if empty."""
    limits: Limits = Limits()
    logs: LogSettings = field(default_factory=LogSettings)
    traces: bool = False
    """Export a span for each request; needs the extra `otel`."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted."""
    production: Environment = PRODUCTION
    """The environment that the sandbox compares its responses with (`parity.py`)."""

    @property
    def caller_rate(self) -> int:
        """Requests per second of one caller; 0 means no limit."""
        rate = self.limits.caller_rate
        return self.environment.caller_rate if rate is None else rate

    @property
    def anonymous(self) -> AnonymousLimits:
        """Limits on callers without a token."""
        return self.limits.anonymous or self.environment.anonymous

    @property
    def production_anonymous(self) -> AnonymousLimits:
        """The limits that production would set on callers without a token.

        Limits that the operator has set for the sandbox apply there as well.
        """
        chosen = asdict(self.anonymous).items() - asdict(self.environment.anonymous).items()
        return replace(self.production.anonymous, **dict(chosen))


def read_settings(
    *,
    production: bool,
    check_data: Callable[[str], object],
    extensions: Path | None,
    strict: bool = False,
    channel_stores: str = "shared",
    page_events: str = "all",
    leeway: int = 0,
    limits: Limits | None = None,
    anonymous: Mapping[str, int | None] | None = None,
    journal: str = "16MiB",
    **unchanged: Any,
) -> Settings:
    """Build settings from the options of `serve`; raises `ConfigurationError` with one line. `leeway` is in seconds.

    `check_data` raises `ValueError` for a URL that names no storage. `anonymous` has values for the fields of
    `AnonymousLimits`; those that are `None` keep the environment's default.
    Other options are fields of `Settings`.
    """
    environment = PRODUCTION if production else STRICT if strict else SANDBOX
    chosen = {name: value for name, value in (anonymous or {}).items() if value is not None}
    settings = Settings(
        environment=environment,
        extensions_file=extensions,
        leeway=leeway * 1_000,
        limits=replace(limits or Limits(), anonymous=replace(environment.anonymous, **chosen)),
        **unchanged,
    )
    is_open, token = extensions is None, settings.control_token
    problems = (
        (production and is_open, "--production needs --extensions FILE: it serves only registered client ids"),
        (strict and production, "--strict: leave it out, because --production is strict already"),
        (strict and is_open, "--strict needs --extensions FILE: it serves only registered client ids"),
        (settings.registered_only and is_open, "--registered-only needs --extensions FILE, which registers client ids"),
        (production and settings.control_hosts, "--control-host: --production has no control API"),
        (production and token, f"{CONTROL_TOKEN}: --production has no control API"),
        # Never the value: it is a secret.
        (token and not _TOKEN.fullmatch(token), f"{CONTROL_TOKEN}: must have 16 to 512 letters, digits and -._~+/="),
    )
    for is_found, problem in problems:
        if is_found:
            raise ConfigurationError(problem)
    _check_root_path(settings.root_path)
    for host in settings.control_hosts:
        if parse_address(host) is None and not _HOST_NAME.fullmatch(host):
            raise ConfigurationError(f"--control-host: {host!r} must be a host name, without scheme and port")
    for proxy in settings.proxies:
        _check_proxy(proxy)
    try:
        check_data(settings.data)
    except ValueError as error:
        raise ConfigurationError(f"--data: {error}") from None
    return replace(
        settings,
        journal=_journal_size(journal),
        extensions=read_extensions(extensions) if extensions else {},
        channel_stores_per_extension=not _is_first_choice("--channel-stores", channel_stores, "shared", "extension"),
        page_events=_is_first_choice("--page-events", page_events, "all", "none"),
    )


def _journal_size(text: str) -> int:
    """Return a size such as `512KiB`, `16MiB`, `1GiB` or `0` in bytes. Raises `ConfigurationError`."""
    match = _SIZE_PATTERN.fullmatch(text)
    size = int(match["number"]) * _SIZE_UNITS[match["unit"]] if match else -1
    if size and size < MIN_JOURNAL:
        raise ConfigurationError(
            f"--journal: {text!r} must be 0 for no journal, or at least {MIN_JOURNAL // KIB}KiB, such as 16MiB"
        )
    return size


def _is_first_choice(option: str, value: str, first: str, second: str) -> bool:
    if value not in (first, second):
        raise ConfigurationError(f"{option}: {value!r} must be {first!r} or {second!r}")
    return value == first


def _check_root_path(text: str) -> None:
    if not _ROOT_PATH.fullmatch(text):
        problem = "must begin but not end with a slash, and have only letters, digits and -._~ between slashes"
        raise ConfigurationError(f"--root-path: {text!r} {problem}, such as /muxy")
    if _SERVICE_PATH.match(text):
        raise ConfigurationError(f"--root-path: {text!r} looks like a path of the service; use another, such as /muxy")


def _check_proxy(text: str) -> None:
    """Refuse everything but addresses and networks: with `*`, any caller could fake its address."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigurationError(f"--proxy: {text!r} must be an IP address or network: {error}") from None
    if network.prefixlen == 0:
        raise ConfigurationError(f"--proxy: {text!r} trusts every address; name the proxies' addresses")
