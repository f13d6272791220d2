"""What `extcli serve` can be told (`operations.md`, Starting)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emulator.config.environment import PRODUCTION, SANDBOX, Environment
from emulator.config.extensions import Extension, read_extensions
from emulator.engines import open_engine
from emulator.errors import ConfigurationError
from emulator.observability.logs import LogSettings

KIB = 1024
MIB = 1024 * KIB
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")


@dataclass(frozen=True)
class Limits:
    """How much of everything one caller may take."""

    body: int = 64 * KIB
    """Bytes in the body of a call (ruling W8)."""
    user_map: int = 4 * MIB
    """Bytes in a PATCH with a map of users."""
    codes: int = 1024 * MIB
    """Bytes in a PUT of codes, which is read as it comes."""
    user_list: int = 64 * MIB
    """Bytes in a list of users to be granted prizes, which is read as it comes."""
    frame: int = 2 * MIB
    """Bytes in one message to the socket (ruling X3)."""
    outbox: int = 1 * MIB
    """Bytes that may wait for a socket's reader before it is closed (ruling B4)."""
    topics: int = 1_000
    """Subscriptions of one socket."""
    namespaces: int = 1_000
    """Namespaces that may be open at once."""
    caller_rate: int | None = None
    """Requests a second of one caller; 0 for no limit, `None` for what the environment says."""
    client_rate: int | None = None
    """Requests a second of one client id."""
    sockets: int = 10_000
    """Connections of one client id at the same time."""
    ids: int = 1_000
    """Ids that one extension may use in one channel, of each kind: polls, rankings, buffers, JSON stores."""
    request_timeout: int = 30
    """Seconds in which a request has to arrive, and its answer to be taken."""
    pin_attempts: int = 60
    """Wrong PINs per client id and minute in production, before all are refused (ruling T4)."""


@dataclass(frozen=True)
class Settings:
    """One way to run the service; wrong combinations raise `ConfigurationError` on construction."""

    environment: Environment = SANDBOX
    data: str = "sqlite://"
    extensions: Mapping[str, Extension] = field(default_factory=dict)
    """Those registered at the start."""
    extensions_file: Path | None = None
    """Where they stand, to be read again."""
    leeway: int = 0
    """How far, in ms, the clock of whoever signs a token may be off from the service's."""
    registered_only: bool = False
    """Take only registered client ids in sandbox too. Production always does."""
    channel_stores_per_extension: bool = False
    """One channel store per extension in place of one for all extensions in the channel (ruling S6)."""
    control_hosts: tuple[str, ...] = ()
    """Names, beside loopback, under which the control API answers."""
    limits: Limits = Limits()
    logs: LogSettings = field(default_factory=LogSettings)
    traces: bool = False
    """Whether there is a span for each request, which needs the extra `otel`."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks whose word on whom they speak for (`X-Forwarded-For`) is taken."""
    has_peers: bool = False
    """Whether other processes serve the same data on the same port. The clock, which is one process's, then stays."""

    @property
    def caller_rate(self) -> int:
        """Requests a second of one caller; 0 for no limit."""
        asked = self.limits.caller_rate
        return self.environment.caller_rate if asked is None else asked

    @property
    def client_rate(self) -> int:
        """Requests a second of one client id; 0 for no limit."""
        asked = self.limits.client_rate
        return self.environment.client_rate if asked is None else asked

    @property
    def admits_any_client(self) -> bool:
        """Ruling A1."""
        return not (self.registered_only or self.environment.verifies_tokens)


def read_settings(
    *,
    production: bool,
    data: str,
    extensions: Path | None,
    registered_only: bool = False,
    channel_stores: str = "shared",
    leeway: int = 0,
    control_hosts: tuple[str, ...] = (),
    limits: Limits | None = None,
    proxies: tuple[str, ...] = (),
    logs: LogSettings | None = None,
    traces: bool = False,
) -> Settings:
    """Turn the words of the command line into settings; raises `ConfigurationError` with one line."""
    if production and extensions is None:
        raise ConfigurationError("--production needs --extensions FILE: it takes registered client ids only")
    if registered_only and extensions is None:
        raise ConfigurationError("--registered-only needs --extensions FILE: there is no registered client id")
    if production and control_hosts:
        raise ConfigurationError("--control-host: with --production there is no control API")
    for each in control_hosts:
        _check_host(each)
    try:
        open_engine(data, namespace="")  # stays closed
    except ValueError as error:
        raise ConfigurationError(f"--data: {error}") from None
    for each in proxies:
        _check_proxy(each)
    if channel_stores not in ("shared", "extension"):
        raise ConfigurationError(f"--channel-stores: {channel_stores!r} is neither 'shared' nor 'extension'")
    return Settings(
        environment=PRODUCTION if production else SANDBOX,
        data=data,
        extensions=read_extensions(extensions) if extensions else {},
        extensions_file=extensions,
        leeway=leeway * 1_000,
        registered_only=registered_only,
        channel_stores_per_extension=channel_stores == "extension",
        control_hosts=control_hosts,
        limits=limits or Limits(),
        proxies=proxies,
        logs=logs or LogSettings(),
        traces=traces,
    )


def _check_host(text: str) -> None:
    """Raise for what cannot be the name, without its port, in the `Host` of a request."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        if not _NAME.fullmatch(text):
            raise ConfigurationError(f"--control-host: {text!r} is no name of a host; no scheme, no port") from None


def _check_proxy(text: str) -> None:
    """Raise for what is no address: `*` would let every caller say where it comes from."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigurationError(f"--proxy: {text!r} is no address and no network: {error}") from None
    if network.prefixlen == 0:
        raise ConfigurationError(f"--proxy: {text!r} is everybody; name the proxies")
