"""What every command receives: its settings, its output, and connections to the service."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from extcli import clock
from extcli.config import settings
from extcli.config.flags import Flags
from extcli.config.resolver import Found, Resolver, Source
from extcli.config.settings import DEFAULT_USER
from extcli.errors import MARK, CliError, ErrorAnswer, Refused, ServerError, forbidden_advice, reason_of
from extcli.output.format import Format
from extcli.output.printer import Output
from extcli.output.sanitize import visible

if TYPE_CHECKING:
    from extcli.api.call import Call
    from extcli.api.client import Service
    from extcli.api.control import Control
    from extcli.api.dry_run import DryRun
    from extcli.api.http import Answer, Http
    from extcli.api.token_sources import Credentials
    from extcli.api.websocket import WebSocketClient
    from extcli.config.link_store import LinkStore

_READERS = ("/_emulator/explain", "/_emulator/journal")
"""Paths that the journal does not record."""
VIEWER = f"viewer:{DEFAULT_USER}"
BROADCASTER = "broadcaster"
BACKEND = "backend"
ADMIN = "admin"


class Session:
    """One run of one command. Connections open on first use."""

    def __init__(self, flags: Flags) -> None:
        self.resolver = Resolver(flags, os.environ)

    @cached_property
    def output(self) -> Output:
        """Where results and notes are printed."""
        flags = self.resolver.flags
        chosen = self.resolver.format(terminal=sys.stdout.isatty())
        return Output(chosen, quiet=flags.quiet, verbose=flags.verbose)

    @property
    def wants_env(self) -> bool:
        """Whether the output format is `env`. If the settings are invalid, the command itself reports that."""
        with suppress(CliError):
            return self.output.format is Format.ENV
        return False

    @property
    def wants_json(self) -> bool:
        """Whether to print errors as JSON. Works even if the settings are what is wrong."""
        with suppress(CliError):
            return self.output.format is Format.JSON
        with suppress(CliError):
            self.resolver.ignore_profiles()  # the profile may be the error
            return self.output.format is Format.JSON
        return False

    @cached_property
    def http(self) -> Http:
        """The HTTP connection to the service."""
        from extcli.api.http import Http

        self._warn_if_elsewhere(self.resolver.url(), self.resolver.find(settings.URL))
        self._warn_if_ignored()
        trace = self.output.trace if self.resolver.flags.verbose else None
        return Http(self.resolver.url(), timeout=self.resolver.timeout(), trace=trace)

    @cached_property
    def dry_run(self) -> DryRun | None:
        """What prints requests instead of sending them, with --dry-run."""
        if self.resolver.flags.dry_run is None:
            return None
        from extcli.api.dry_run import DryRun

        return DryRun(self.resolver, self.output, self.resolver.flags.dry_run)

    def service(self, acts_as: str = VIEWER) -> Service:
        """Return the service, called as the identity that the user chose, or else as `acts_as`."""
        return self._service(self.credentials(acts_as))

    def credentials(self, acts_as: str, *, to: str | None = None) -> Credentials:
        """Return the credentials of that identity. The token will be sent to `to`, by default the service."""
        from extcli.api.credentials import credentials

        identity = self.resolver.identity(acts_as)
        return credentials(self.resolver, identity, self.http, to=to or self.resolver.url())

    def channel(self, acts_as: str) -> str | None:
        """Return the channel that the command acts in; `None` for all channels."""
        from extcli.api.credentials import channel_of

        return channel_of(self.resolver.identity(acts_as), self.resolver)

    def spans_channels(self, acts_as: str) -> bool:
        """Return whether the command acts for all channels: as backend or admin, with no channel named (ruling A4)."""
        from extcli.api.credentials import spans_channels

        return spans_channels(self.resolver, self.resolver.identity(acts_as))

    def warn_without_channel(self, acts_as: str, written: str, name: str) -> None:
        """Report that `written` will belong to no channel, so that no channel's users see it (ruling A4)."""
        if not is_global(name) and self.spans_channels(acts_as):
            self.output.report(f"{written} belongs to no channel; --channel ID names one")

    def anonymous_service(self) -> Service:
        """Return the service, called without credentials."""
        return self._service(None)

    def control(self) -> Control:
        """Return the control API of the emulator."""
        from extcli.api.control import Control

        return Control(SignedCalls(self, None))

    def service_by_client_id(self) -> Service:
        """Return the service, called with a client id but no token."""
        from extcli.api.token_sources import NoToken

        return self._service(NoToken())

    def service_with(self, token: str) -> Service:
        """Return the service, called with this token."""
        from extcli.api.token_sources import GivenToken

        return self._service(GivenToken(token))

    def _service(self, credentials: Credentials | None) -> Service:
        from extcli.api.client import Service

        return Service(SignedCalls(self, credentials))

    @cached_property
    def websocket(self) -> WebSocketClient:
        """The WebSocket of the service, connected."""
        from extcli.api.websocket import UnsentWebSocket, WebSocketClient

        if self.dry_run:
            return UnsentWebSocket(self.dry_run)
        self._warn_if_elsewhere(self.resolver.ws_url(), self.resolver.configured_ws_url())
        return WebSocketClient(self.resolver.ws_url(), timeout=self.resolver.timeout(), trace=self.output.trace)

    def reconnect(self, seconds: float) -> None:
        """Open a new WebSocket connection. From now on no operation waits longer than `seconds`."""
        from extcli.api.websocket import WebSocketClient

        seconds = min(seconds, self.resolver.timeout())
        self.http.set_timeout(seconds)
        if "websocket" in self.__dict__:
            self.websocket.close()
        self.websocket = WebSocketClient(self.resolver.ws_url(), timeout=seconds, trace=self.output.trace)

    @cached_property
    def link_store(self) -> LinkStore:
        """The links stored on this machine."""
        from extcli.config.link_store import LinkStore

        return LinkStore(self.resolver.state_dir())

    def now(self) -> int:
        """Return the service's time in Unix ms, since an emulator's clock may have been moved, else this machine's."""
        from extcli.api.token_sources import service_time

        return service_time(self.http) or clock.now()

    def _warn_if_elsewhere(self, address: str, found: Found[str] | None) -> None:
        """Report that a profile was named, but the command goes to another address: that may be a mistake."""
        profile = self.resolver.profile
        if profile and found and self.resolver.named_profile and not profile.is_of(address):
            self.output.report(
                f"{found.origin} is {address}, not an address of profile {profile.name}: "
                "the profile's secret and token are not used"
            )

    def _warn_if_ignored(self) -> None:
        """Report that -p NAME beats EXTCLI_URL, if that names another service."""
        chosen, variable = self.resolver.find(settings.URL), self.resolver.in_variable(settings.URL)
        if chosen and variable and chosen.source is Source.NAMED_PROFILE:
            profile = self.resolver.profile
            if profile and not profile.is_of(variable.value):
                self.output.report(f"EXTCLI_URL is ignored: profile {profile.name} names {chosen.value}")

    def close(self) -> None:
        """Close what was opened."""
        for each in ("websocket", "http"):
            if each in self.__dict__:
                getattr(self, each).close()


def is_global(name: str) -> bool:
    """Return whether all channels share the poll or ranking of this id (ruling A4)."""
    return name.startswith("global-")


class SignedCalls:
    """Sends calls with credentials and raises error answers. Implements `call.Caller`."""

    def __init__(self, session: Session, credentials: Credentials | None) -> None:
        self._http = session.http
        self._dry_run = session.dry_run
        self._credentials = credentials
        self._resolver = session.resolver

    def perform(self, call: Call) -> Answer:
        """Send a call and return its whole answer. Raises `ErrorAnswer`."""
        with self.stream(call) as answer:
            answer.read()
            self._http.trace_body(answer)
            return answer

    @contextmanager
    def stream(self, call: Call) -> Iterator[Answer]:
        """Send a call and yield its answer, the body unread. Raises `ErrorAnswer`."""
        query = self._query(call)
        if self._dry_run:
            self._dry_run.withhold(self._http.url, call, query, self._credentials)
        with self._send(call, query) as answer:
            if answer.status_code < 300:
                yield answer
                return
            answer.read()
            reason = reason_of(answer.content)
            credentials = self._credentials if call.signed else None
            if not (answer.status_code == 401 and credentials and credentials.renew(reason)):
                raise self._error_of(call, answer, credentials)
        with self._send(call, query) as answer:
            if answer.status_code >= 300:
                answer.read()
                raise self._error_of(call, answer, credentials)
            yield answer

    def _error_of(self, call: Call, answer: Answer, credentials: Credentials | None) -> ErrorAnswer:
        error, flags = error_of(call, answer, credentials), self._resolver.flags
        given = {"-p": flags.profile, "--url": flags.url}
        error.place = [word for name, value in given.items() if value for word in (name, value)]
        return error

    def _query(self, call: Call) -> Mapping[str, Any]:
        if call.signed and self._credentials and self._credentials.given and (channel := self._resolver.channel()):
            # A given token has its own channel or none. An extension-level one may name another (ruling A4).
            return {"channel_id": channel, **call.query}
        return call.query

    @contextmanager
    def _send(self, call: Call, query: Mapping[str, Any]) -> Iterator[Answer]:
        authorization = None
        if call.signed and self._credentials:
            authorization = f"{self._resolver.client_id()} {self._credentials.token()}".rstrip()
        with self._http.stream(
            call.method, call.path, query=query, body=call.body, authorization=authorization, is_probe=call.is_probe
        ) as answer:
            yield answer


def error_of(call: Call, answer: Answer, credentials: Credentials | None) -> ErrorAnswer:
    """Return the error for an answer with status 300 or above."""
    status, request_id = answer.status_code, answer.headers.get("x-request-id", "")
    if status >= 500:
        return ServerError(str(call), status, answer.content, request_id=request_id)
    fix = _advice(call, answer, credentials)
    error = Refused(str(call), status, answer.content, request_id=request_id, fix=fix)
    error.is_explained = MARK in answer.headers and not call.path.startswith(_READERS)
    return error


def _advice(call: Call, answer: Answer, credentials: Credentials | None) -> str:
    status = answer.status_code
    if status < 400:
        return f"it redirects to {answer.headers.get('location', 'nowhere')}: check --url (EXTCLI_URL)"
    if status == 401:
        return credentials.advice if credentials else "this call needs credentials"
    if status == 403:
        if call.signed:
            return forbidden_advice(answer.content)
        return "this call carries no credentials: check the address, or the service's settings"
    if status in (405, 411) and call.method == "GET" and call.body is not None:
        return "this service does not accept GET with a body: use --post or EXTCLI_BROADCAST_METHOD=POST"
    if status == 404 and call.path.startswith("/_emulator/") and MARK not in answer.headers:
        return "only an emulator in sandbox has this path: check --url (EXTCLI_URL)"
    if status == 404 and not answer.headers.get("content-type", "").startswith("application/json"):
        return "check that --url (EXTCLI_URL) is an extension service"
    if status == 429:
        after = answer.headers.get("retry-after", "")
        return f"retry in {after} s, at a lower rate" if after.isdecimal() else "retry later, at a lower rate"
    if status == 400:
        advice = _correction(call, reason_of(answer.content))
        return advice if call.method == "GET" else f"nothing was changed; {advice}"
    return ""


def _correction(call: Call, reason: str) -> str:
    """Return how to correct a call that was refused with 400 for this reason."""
    if reason.startswith("Invalid channel"):
        return "add --channel ID"
    if reason.startswith("poll is closed") and "id" in call.query:
        return f"`extcli vote config {visible(str(call.query['id']))}` shows its times, and whether it is disabled"
    return "correct it and try again"
