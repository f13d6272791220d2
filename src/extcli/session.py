"""The session that every command receives: its settings, its output, and connections to the service."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from extcli import clock
from extcli.config import settings
from extcli.config.flags import Flags
from extcli.config.resolver import Found, Resolver, Source
from extcli.config.settings import DEFAULT_USER
from extcli.config.urls import service_of
from extcli.errors import CliError, Unreachable
from extcli.output.format import Format
from extcli.output.printer import Output

if TYPE_CHECKING:
    from extcli.api.client import Service
    from extcli.api.control import Control
    from extcli.api.dry_run import DryRun
    from extcli.api.http import Http
    from extcli.api.signed_calls import SignedCalls
    from extcli.api.token_sources import Credentials
    from extcli.api.websocket import WebSocketClient
    from extcli.config.link_store import LinkStore

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
        chosen = self.resolver.format(terminal=sys.stdout.isatty())
        return Output(chosen, quiet=flags.quiet, verbose=flags.verbose)

    @property
    def wants_json(self) -> bool:
        """Whether to print errors as JSON. Works even if the settings are invalid."""
        with suppress(CliError):
            return self.output.format in (Format.JSON, Format.JSONL)
        with suppress(CliError):
            self.resolver.ignore_profiles()  # the profile may be the error
            return self.output.format in (Format.JSON, Format.JSONL)
        return False

    @cached_property
    def http(self) -> Http:
        """The HTTP connection to the service."""
        from extcli.config.secret_lookup import control_token

        self._warn_if_elsewhere(self.resolver.url(), self.resolver.find(settings.URL))
        self._warn_if_ignored()
        return self._http(self.resolver.url(), control_token(self.resolver))

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
            try:
                self._environments[address] = self._environment_at(address)
            except Unreachable:
                if address == url:
                    raise
                self._environments[address] = ""
        return self._environments[address]

    def _environment_at(self, address: str) -> str:
        from extcli.api.control import Control
        from extcli.api.signed_calls import SignedCalls
        from extcli.reading.shapes import document_of

        # The control token belongs to the service of --url.
        is_other = address != self.resolver.url()
        http = self._http(address, None) if is_other else self.http
        try:
            response = Control(SignedCalls(http, self.resolver, None, self.dry_run)).probing().is_ready()
            return str(document_of(response, {"environment": str})["environment"])
        except Unreachable:
            raise
        except CliError:  # a deployment, which has no such path, or a service that is not ready
            return ""
        finally:
            if is_other:
                http.close()

    def is_production(self, environment: str | None = None, *, over_socket: bool = False) -> bool:
        """Return whether the command goes to production: by a profile, or by what the service says that it is.

        `environment` is the known environment; by default, this asks the service. A service that does not say it counts
        as production, unless it is on this machine.
        """
        from extcli.api.http import is_loopback

        if self.resolver.production() is not None:
            return True
        environment = self.environment(over_socket=over_socket) if environment is None else environment
        if environment:
            return environment != "sandbox"
        address = self.resolver.ws_url() if over_socket else self.resolver.url()
        return not is_loopback(urlsplit(address).hostname or "")

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
        from extcli.api.token_sources import credentials

        identity = self.resolver.identity(acts_as)
        return credentials(self.resolver, identity, self.http, to=to or self.resolver.url())

    def channel(self, acts_as: str) -> str | None:
        """Return the channel that the command acts in; `None` for all channels."""
        from extcli.api.token_sources import channel_of

        return channel_of(self.resolver.identity(acts_as), self.resolver)

    def spans_channels(self, acts_as: str) -> bool:
        """Return whether the command acts for all channels: as backend or admin, with no channel named (ruling A4)."""
        from extcli.api.token_sources import spans_channels

        return spans_channels(self.resolver, self.resolver.identity(acts_as))

    def warn_without_channel(self, acts_as: str, written: str, name: str) -> None:
        """Report that `written` will belong to no channel, so that no channel's users see it (ruling A4)."""
        if not is_global(name) and self.spans_channels(acts_as):
            self.output.report(f"{written} belongs to no channel; --channel ID names one")

    def control(self) -> Control:
        """Return the control API of the emulator."""
        from extcli.api.control import Control

        return Control(self._calls(None))

    def service_with(self, credentials: Credentials | None) -> Service:
        """Return the service, called with these credentials, or with none."""
        from extcli.api.client import Service

        return Service(self._calls(credentials))

    def _calls(self, credentials: Credentials | None) -> SignedCalls:
        from extcli.api.signed_calls import SignedCalls

        return SignedCalls(self.http, self.resolver, credentials, self.dry_run)

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

        return LinkStore(self.resolver.state_dir())

    def now(self) -> int:
        """Return Unix ms by the clock of an emulator, which may have been moved, or by this machine's."""
        from extcli.api.token_sources import service_time

        return service_time(self.http, self.output.report) or clock.now()

    def _warn_if_elsewhere(self, address: str, found: Found[str] | None) -> None:
        """Report that the command goes to an address that differs from the named profile's, which may be a mistake."""
        profile = self.resolver.profile
        if profile and found and self.resolver.named_profile and not profile.is_of(address):
            self.output.report(
                f"{found.origin} is {address}, not an address of profile {profile.name}: "
                "the profile's secret and token are not used"
            )

    def _warn_if_ignored(self) -> None:
        """Report that -p NAME takes precedence over EXTCLI_URL, if the two name different services."""
        chosen, variable = self.resolver.find(settings.URL), self.resolver.in_variable(settings.URL)
        if chosen and variable and chosen.source is Source.NAMED_PROFILE:
            profile = self.resolver.profile
            if profile and not profile.is_of(variable.value):
                self.output.report(f"EXTCLI_URL is ignored: profile {profile.name} names {chosen.value}")

    def close(self) -> None:
        """Close all connections that the session opened."""
        if self._socket:
            self._socket.close()
        if "http" in self.__dict__:
            self.http.close()


def definer_of(name: str) -> str:
    """Return who defines, changes and deletes the poll or ranking of this id: only admin and backend do if it is shared
    by all channels (ruling A4).
    """
    return BACKEND if is_global(name) else BROADCASTER


def is_global(name: str) -> bool:
    """Return whether all channels share the poll or ranking of this id (ruling A4)."""
    return name.startswith("global-")
