"""What a command receives: settings, printing, and the service as somebody."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from extcli.config import settings
from extcli.config.resolver import Found, Resolver
from extcli.config.settings import DEFAULT_USER, Flags
from extcli.errors import CliError, ErrorAnswer, Refused, ServerError, reason_of
from extcli.output.format import Format
from extcli.output.printer import Output

if TYPE_CHECKING:
    from extcli.api.client import Call, Service
    from extcli.api.credentials import Credentials
    from extcli.api.http import Answer, Http
    from extcli.api.websocket import WebSocketClient
    from extcli.config.link_store import LinkStore

VIEWER = f"viewer:{DEFAULT_USER}"
BROADCASTER = "broadcaster"
BACKEND = "backend"
ADMIN = "admin"
ROLES = ("viewer", BROADCASTER, BACKEND, ADMIN)


class Session:
    """One run of one command. Nothing is opened before it is asked for."""

    def __init__(self, flags: Flags) -> None:
        self.resolver = Resolver(flags, os.environ)

    @cached_property
    def output(self) -> Output:
        """Where results and remarks go."""
        flags = self.resolver.flags
        chosen = self.resolver.format(terminal=sys.stdout.isatty())
        return Output(chosen, quiet=flags.quiet, verbose=flags.verbose)

    @property
    def wants_json(self) -> bool:
        """Whether errors are to be JSON as well; asked when the settings themselves may be the error."""
        with suppress(CliError):
            return self.output.format is Format.JSON
        with suppress(CliError):
            self.resolver.pass_over_profiles()  # it may be what is wrong
            return self.output.format is Format.JSON
        return False

    @cached_property
    def http(self) -> Http:
        """The connection to the service."""
        from extcli.api.http import Http

        self._remark_if_elsewhere(self.resolver.url(), self.resolver.find(settings.URL))
        return Http(self.resolver.url(), timeout=self.resolver.timeout(), trace=self.output.trace)

    def service(self, acts_as: str = VIEWER) -> Service:
        """The service, called as the identity the user chose, else as this one, which suits the command."""
        from extcli.api.client import Service

        return Service(SignedCalls(self, self.credentials(acts_as)))

    def credentials(self, acts_as: str, *, to: str | None = None) -> Credentials:
        """Where the tokens of that identity come from, which are to be sent to the service, or to another address."""
        from extcli.api.credentials import credentials

        identity = self.resolver.identity(acts_as)
        if identity.role not in ROLES:
            self.output.report(f"the service takes the unknown role {identity.role} as viewer")
        return credentials(self.resolver, identity, self.http, to=to or self.resolver.url())

    def open_service(self) -> Service:
        """The service, for calls that need no credentials."""
        from extcli.api.client import Service

        return Service(SignedCalls(self, None))

    def named_service(self) -> Service:
        """The service, for calls that say which extension asks, and not who."""
        from extcli.api.client import Service
        from extcli.api.credentials import NoToken

        return Service(SignedCalls(self, NoToken()))

    def service_with(self, token: str) -> Service:
        """The service, called with this token."""
        from extcli.api.client import Service
        from extcli.api.credentials import GivenToken

        return Service(SignedCalls(self, GivenToken(token)))

    @cached_property
    def websocket(self) -> WebSocketClient:
        """The socket of the service, connected."""
        from extcli.api.websocket import WebSocketClient

        self._remark_if_elsewhere(self.resolver.ws_url(), self.resolver.told_socket())
        return WebSocketClient(self.resolver.ws_url(), timeout=self.resolver.timeout(), trace=self.output.trace)

    def reconnect(self, seconds: float) -> None:
        """Connect the socket anew. From now on nothing waits longer than so many seconds."""
        from extcli.api.websocket import WebSocketClient

        seconds = min(seconds, self.resolver.timeout())
        self.http.allow(seconds)
        if "websocket" in self.__dict__:
            self.websocket.close()
        self.websocket = WebSocketClient(self.resolver.ws_url(), timeout=seconds, trace=self.output.trace)

    @cached_property
    def link_store(self) -> LinkStore:
        """The links that are kept on this machine."""
        from extcli.config.link_store import LinkStore

        return LinkStore(self.resolver.state_dir())

    def service_now(self) -> int | None:
        """The service's time where it tells it: an emulator's may have been moved."""
        from extcli.api.credentials import service_time

        return service_time(self.http)

    def _remark_if_elsewhere(self, address: str, told: Found[str] | None) -> None:
        """A profile that was asked for by name, and is not where the command goes, may be a mistake."""
        profile = self.resolver.profile
        if profile and told and self.resolver.asked_profile and not profile.is_of(address):
            what = f"{told.origin} leads to {address}, which is not of profile {profile.name}"
            self.output.report(f"{what}: its secret and token are not used there")

    def close(self) -> None:
        """Give back what was opened."""
        for each in ("live", "http"):
            if each in self.__dict__:
                getattr(self, each).close()


class SignedCalls:
    """Performs calls with credentials, and raises what the service declines. A `client.Caller`."""

    def __init__(self, session: Session, credentials: Credentials | None) -> None:
        self._http = session.http
        self._credentials = credentials
        self._sources = session.resolver

    def perform(self, call: Call) -> Answer:
        """The whole answer of a call that succeeded."""
        with self.stream(call) as answer:
            answer.read()
            return answer

    @contextmanager
    def stream(self, call: Call) -> Iterator[Answer]:
        """The answer of a call that succeeded, its body still to be read."""
        with self._send(call) as answer:
            if answer.status_code < 300:
                yield answer
                return
            answer.read()
            reason = reason_of(answer.content)
            credentials = self._credentials if call.signed else None
            if not (answer.status_code == 401 and credentials and credentials.renew(reason)):
                raise declined(call, answer, credentials)
        with self._send(call) as answer:
            if answer.status_code >= 300:
                answer.read()
                raise declined(call, answer, credentials)
            yield answer

    @contextmanager
    def _send(self, call: Call) -> Iterator[Answer]:
        authorization, query = None, call.query
        if call.signed and self._credentials:
            authorization = f"{self._sources.client_id()} {self._credentials.token()}".rstrip()
            if self._credentials.given and (channel := self._sources.channel()):
                # A ready-made token has its own channel or none; an extension-level one may name another (ruling A4).
                query = {"channel_id": channel, **query}
        with self._http.stream(
            call.method, call.path, query=query, body=call.body, authorization=authorization
        ) as answer:
            yield answer


def declined(call: Call, answer: Answer, credentials: Credentials | None) -> ErrorAnswer:
    """The error that an answer of 300 or more is."""
    status = answer.status_code
    if status >= 500:
        return ServerError(str(call), status, answer.content, request_id=answer.headers.get("x-request-id", ""))
    return Refused(str(call), status, answer.content, fix=_advice(call, answer, credentials))


def _advice(call: Call, answer: Answer, credentials: Credentials | None) -> str:
    status = answer.status_code
    if status < 400:
        return f"it points to {answer.headers.get('location', 'nowhere')}: is --url (EXTCLI_URL) the right address?"
    if status == 401:
        return credentials.advice if credentials else "this call needs credentials"
    if status == 403:
        if call.signed:
            return "act as somebody else: --as broadcaster, --as backend or --as admin"
        return "it carries no credentials: look at the address it goes to, or at the service's settings"
    if status in (405, 411) and call.method == "GET" and call.body is not None:
        return "this service takes no GET with a body: try --post, or set EXTCLI_BROADCAST_METHOD=POST"
    if status == 404 and call.path.startswith("/_emulator/"):
        return "only an emulator in sandbox can be controlled; is --url (EXTCLI_URL) one?"
    if status == 404 and not answer.headers.get("content-type", "").startswith("application/json"):
        return "is --url (EXTCLI_URL) an extension service?"
    if status == 429:
        after = answer.headers.get("retry-after", "")
        return f"try again in {after} s, and send less at once" if after.isdecimal() else "wait, and send less at once"
    return "nothing was changed; correct it and try again" if status == 400 else ""
