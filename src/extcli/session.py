"""The session that every command receives: its settings, its output, and connections to the service."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from extcli import clock
from extcli.api import tokens
from extcli.api.call import CONTROL, SERVICE
from extcli.config import settings
from extcli.config.flags import Flags
from extcli.config.resolver import Found, Resolver
from extcli.config.settings import DEFAULT_USER
from extcli.config.urls import is_loopback, service_of
from extcli.errors import CliError, Unreachable
from extcli.output.format import Format
from extcli.output.printer import Output
from extcli.reading import document_of

if TYPE_CHECKING:
    from extcli.api.client import Service as Service
    from extcli.api.dry_run import DryRun
    from extcli.api.http import Http
    from extcli.api.tokens import Credentials
    from extcli.api.websocket import WebSocketClient
    from extcli.config.link_store import LinkStore
else:
    Service = Any  # a command that calls no service does not import it

VIEWER = f"viewer:{DEFAULT_USER}"
BROADCASTER = "broadcaster"
BACKEND = "backend"
ADMIN = "admin"


class Session:
    """One run of one command. Connections open on first use."""

    def __init__(self, flags: Flags) -> None:
        self.resolver = Resolver(flags, os.environ)
        self._socket: WebSocketClient | None = None
        self._environments: dict[str, str] = {}
        """The environment of each service that was asked, by its address."""

    @cached_property
    def output(self) -> Output:
        """Where results and notes are printed."""
        flags = self.resolver.flags
        chosen = self.resolver.value(settings.OUTPUT, Format.TABLE if sys.stdout.isatty() else Format.PLAIN)
        return Output(chosen, quiet=flags.quiet, verbose=flags.verbose)

    @property
    def wants_json(self) -> bool:
        """Whether to print errors as JSON. Works even if the settings are invalid."""
        for _ in range(2):
            with suppress(CliError):
                return self.output.format in (Format.JSON, Format.JSONL)
            self.resolver.ignore_profiles()  # the profile may be the error
        return False

    @cached_property
    def http(self) -> Http:
        """The HTTP connection to the service."""
        self._warn_if_elsewhere(self.resolver.url(), self.resolver.find(settings.URL))
        return self._http(self.resolver.url(), self.resolver.control_token())

    def _http(self, url: str, token: str | None) -> Http:
        from extcli.api.http import Http

        trace = self.output.trace if self.resolver.flags.verbose else None
        return Http(url, timeout=self.resolver.timeout(), trace=trace, control_token=token)

    def environment(self, *, over_socket: bool = False) -> str:
        """Return the environment that the service reports: `sandbox` or `production`; empty if it reports none.

        Sends one GET.
        `over_socket` asks the service at the address of the WebSocket, which may be another one. Raises `Unreachable`,
        but not for that other one.
        """
        url = self.resolver.url()
        address = service_of(self.resolver.ws_url()) if over_socket else url
        if address not in self._environments:
            # The control token belongs to the service of --url.
            http = self.http if address == url else self._http(address, None)
            try:
                response = self._called(http, None, CONTROL).probing().get("ready")
                found = str(document_of(response, {"environment": str})["environment"])
            except CliError as error:  # also a deployment, which has no such path, and a service that is not ready
                if isinstance(error, Unreachable) and address == url:
                    raise
                found = ""
            self._environments[address] = found
        return self._environments[address]

    def why_production(self, environment: str | None = None, *, over_socket: bool = False) -> str:
        """Return why the command goes to production, by a profile or by what the service says; empty if it does not.

        `environment` is the known environment; by default, this asks the service. A service that does not say it counts
        as production, unless it is on this machine.
        """
        address = self.resolver.ws_url() if over_socket else self.resolver.url()
        if profile := self.resolver.production():
            is_known = profile.is_at(address)
            return f"profile {profile.name} is production{': ' if is_known else ', and may be '}{address}"
        environment = self.environment(over_socket=over_socket) if environment is None else environment
        if environment == "sandbox" or (not environment and is_loopback(urlsplit(address).hostname or "")):
            return ""
        return f"{address} is {environment}" if environment else f"{address} does not say whether it is production"

    @cached_property
    def dry_run(self) -> DryRun | None:
        """The object that prints requests instead of sending them, if --dry-run is given."""
        if self.resolver.flags.dry_run is None:
            return None
        from extcli.api.dry_run import DryRun

        return DryRun(self.resolver, self.output, self.resolver.flags.dry_run)

    def service(self, acts_as: str = VIEWER) -> Service:
        """Return the service, to be called as the identity that the user chose, or by default as `acts_as`."""
        return self.service_with(self.credentials(acts_as))

    def credentials(self, acts_as: str, *, to: str | None = None) -> Credentials:
        """Return the credentials of the chosen identity, or of `acts_as`.

        Tokens will be sent to `to`, by default the service.
        """
        identity = self.resolver.identity(acts_as)
        return tokens.credentials(self.resolver, identity, self.http, to=to or self.resolver.url())

    def channel(self, acts_as: str) -> str | None:
        """Return the channel that the command acts in; `None` for all channels."""
        return tokens.channel_of(self.resolver.identity(acts_as), self.resolver)

    def spans_channels(self, acts_as: str) -> bool:
        """Return whether the command acts for all channels: as backend or admin, with no channel named (ruling A4)."""
        return tokens.spans_channels(self.resolver, self.resolver.identity(acts_as))

    def warn_without_channel(self, acts_as: str, written: str, name: str) -> None:
        """Report that `written` will belong to no channel, so that no channel's users see it (ruling A4)."""
        if not is_global(name) and self.spans_channels(acts_as):
            self.output.report(f"{written} belongs to no channel; choose one with --channel ID")

    def control(self) -> Service:
        """Return the control API of the emulator. Its calls need no credentials."""
        return self._called(self.http, None, CONTROL)

    def service_with(self, credentials: Credentials | None) -> Service:
        """Return the service, called with these credentials, or with none."""
        return self._called(self.http, credentials, SERVICE)

    def _called(self, http: Http, credentials: Credentials | None, base: str) -> Service:
        from extcli.api.client import Service

        resolver, dry_run = self.resolver, self.dry_run
        # A given token has its own channel or none. An extension-level one may name another (ruling A4).
        channel = resolver.channel() if credentials and credentials.given else None
        return Service(
            http,
            credentials,
            client_id=resolver.client_id() if credentials else "",
            base=base,
            query={"channel_id": channel} if channel else {},
            place=resolver.flags.words("profile", "url"),
            withhold=None if dry_run is None else lambda call: dry_run.withhold(http.url, call, credentials),
        )

    def open_socket(self) -> WebSocketClient:
        """Return the WebSocket of the service. The first call connects it."""
        from extcli.api.websocket import UnsentWebSocket

        if self._socket is None and self.dry_run:
            self._socket = UnsentWebSocket(self.dry_run)
        elif self._socket is None:
            self._warn_if_elsewhere(self.resolver.ws_url(), self.resolver.configured_ws_url())
            self._socket = self._connect_socket(self.resolver.timeout())
        return self._socket

    def reconnect(self, seconds: float) -> None:
        """Open a new WebSocket connection. From now on no operation waits longer than `seconds`."""
        seconds = min(seconds, self.resolver.timeout())
        self.http.set_timeout(seconds)
        if self._socket:
            self._socket.close()
        self._socket = self._connect_socket(seconds)

    def _connect_socket(self, seconds: float) -> WebSocketClient:
        from extcli.api.websocket import WebSocketClient

        return WebSocketClient(self.resolver.ws_url(), timeout=seconds, trace=self.output.trace)

    @cached_property
    def link_store(self) -> LinkStore:
        """The links stored on this machine."""
        from extcli.config.link_store import LinkStore

        directory = self.resolver.variable("EXTCLI_STATE_DIR")
        return LinkStore(Path(directory) if directory else None)

    def now(self) -> int:
        """Return Unix ms by the clock of an emulator, which may have been moved, or by this machine's."""
        return tokens.service_time(self.http, self.output.report) or clock.now()

    def _warn_if_elsewhere(self, address: str, found: Found[str] | None) -> None:
        """Report that the command goes to an address that differs from the named profile's, which may be a mistake."""
        profile = self.resolver.profile
        if profile and found and self.resolver.named_profile and not profile.is_at(address):
            self.output.report(
                f"{found.origin} is {address}, not an address of profile {profile.name}: "
                "the profile's secret and token are not used"
            )

    def close(self) -> None:
        """Close all connections that the session opened."""
        if self._socket:
            self._socket.close()
        if "http" in self.__dict__:
            self.http.close()


def definer_role(name: str) -> str:
    """Return who defines, changes and deletes the poll or ranking of this id: only admin and backend do if it is shared
    by all channels (ruling A4).
    """
    return BACKEND if is_global(name) else BROADCASTER


def is_global(name: str) -> bool:
    """Return whether all channels share the poll or ranking of this id (ruling A4)."""
    return name.startswith("global-")
