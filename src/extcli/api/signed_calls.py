"""Sends the calls of a command, and turns error responses into errors with advice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from emulator.contract.names import CODE, HINT, MARK
from extcli import bounded_json
from extcli.api import bodies
from extcli.api.call import CONTROL, Call
from extcli.api.failures import NotConnected
from extcli.api.http import Http, Response, is_loopback
from extcli.api.retry import RATE_LIMITED, retry_after
from extcli.api.token_sources import Credentials
from extcli.config.resolver import Resolver
from extcli.errors import (
    FORBIDDEN,
    CliError,
    ErrorResponse,
    Refused,
    ServerError,
    Unreachable,
    member_of,
)
from extcli.output.sanitize import visible

if TYPE_CHECKING:
    from extcli.api.dry_run import DryRun

_READERS = ("/_emulator/explain", "/_emulator/journal")
"""Paths that the journal does not record."""


class CallsWithCredentials(ABC):
    """Sends calls, and again with a new token if a sandbox refuses one as expired. Implements `call.Caller`."""

    def __init__(self, http: Http, credentials: Credentials | None) -> None:
        self._http = http
        self._credentials = credentials

    def perform(self, call: Call) -> Response:
        """Send a call and return its whole response. Raises `ErrorResponse` or `Unreachable`."""
        with self._response(call, bodies.RESPONSE) as response:
            response.read()
            self._http.trace_body(response)
            return response

    @contextmanager
    def stream(self, call: Call) -> Iterator[Response]:
        """Send a call and yield its response before the body is read.

        The body's size is not limited. Raises `ErrorResponse` or `Unreachable`.
        """
        with self._response(call, None) as response:
            yield response

    @contextmanager
    def _response(self, call: Call, limit: int | None) -> Iterator[Response]:
        credentials = self._credentials if call.signed else None
        for may_renew in (True, False):
            with self._send(call, self._authorization(credentials) if credentials else None, limit) as response:
                if response.status_code < 300:
                    yield response
                    return
                response.read()
                if not (may_renew and credentials and is_expired(response) and credentials.renew()):
                    raise self._error_of(call, response, credentials)

    @contextmanager
    def _send(self, call: Call, authorization: str | None, limit: int | None) -> Iterator[Response]:
        with self._http.stream(
            call.method,
            call.path,
            query=call.query,
            body=call.body,
            authorization=authorization,
            is_probe=call.is_probe,
            limit=limit,
        ) as response:
            yield response

    @abstractmethod
    def _authorization(self, credentials: Credentials) -> str:
        """Return the `Authorization` header for a call with these credentials."""

    def _error_of(self, call: Call, response: Response, credentials: Credentials | None) -> ErrorResponse:
        return error_of(call, response, credentials)


class SignedCalls(CallsWithCredentials):
    """Sends the calls of a command, or prints them with --dry-run."""

    def __init__(self, http: Http, resolver: Resolver, credentials: Credentials | None, dry_run: DryRun | None) -> None:
        super().__init__(http, credentials)
        self._resolver = resolver
        self._dry_run = dry_run

    @contextmanager
    def _response(self, call: Call, limit: int | None) -> Iterator[Response]:
        call = self._with_channel(call)
        if self._dry_run:
            self._dry_run.withhold(self._http.url, call, call.query, self._credentials)
        with super()._response(call, limit) as response:
            yield response

    def _with_channel(self, call: Call) -> Call:
        if call.signed and self._credentials and self._credentials.given and (channel := self._resolver.channel()):
            # A given token has its own channel or none. An extension-level one may name another (ruling A4).
            return replace(call, query={"channel_id": channel, **call.query})
        return call

    def _authorization(self, credentials: Credentials) -> str:
        return f"{self._resolver.client_id()} {credentials.token()}".rstrip()

    def _error_of(self, call: Call, response: Response, credentials: Credentials | None) -> ErrorResponse:
        error = super()._error_of(call, response, credentials)
        error.place = self._resolver.flags.words("profile", "url")
        return error

    @contextmanager
    def _send(self, call: Call, authorization: str | None, limit: int | None) -> Iterator[Response]:
        try:
            with super()._send(call, authorization, limit) as response:
                yield response
        except NotConnected:
            raise
        except Unreachable as error:
            self._suspect_faults(call, error)
            raise

    def _suspect_faults(self, call: Call, error: Unreachable) -> None:
        """Add a hint to the error, if faults of a sandbox may be its cause."""
        profile = self._resolver.profile
        if call.is_probe or call.path.startswith(CONTROL) or (profile and profile.production):
            return
        if hint := _hint_of_faults(self._http.url):
            error.fix = "; ".join(filter(None, (error.fix, hint)))


def is_expired(response: Response) -> bool:
    """Return whether a sandbox refused a token as expired. Other services do not say what is wrong with one."""
    return response.headers.get(CODE) in ("auth.expired", "auth.expired_by_moved_clock")


def error_of(call: Call, response: Response, credentials: Credentials | None) -> ErrorResponse:
    """Return the error for a response with status 300 or above."""
    status, request_id = response.status_code, response.headers.get("x-request-id", "")
    kind: type[ErrorResponse] = ServerError if status >= 500 else Refused
    fix = "" if kind is ServerError else _advice(call, response, credentials)
    error = kind(str(call), status, response.content, request_id=request_id, fix=fix)
    error.retry_after = response.headers.get("retry-after")
    if kind is Refused:
        error.hint, error.code = response.headers.get(HINT, ""), response.headers.get(CODE, "")
        error.is_explained = MARK in response.headers and not call.path.startswith(_READERS)
    return error


def _advice(call: Call, response: Response, credentials: Credentials | None) -> str:
    status = response.status_code
    if status < 400:
        return f"it redirects to {response.headers.get('location', 'nowhere')}: check --url (EXTCLI_URL)"
    if status == 401:
        return credentials.advice if credentials else "this call needs credentials"
    if status == 403:
        if call.signed:
            return FORBIDDEN
        return "this call carries no credentials: check the address, or the service's settings"
    if status in (405, 411) and call.method == "GET" and call.body is not None:
        return "this service does not accept GET with a body: use --post or EXTCLI_BROADCAST_METHOD=POST"
    if status == 404 and call.path.startswith("/_emulator/") and MARK not in response.headers:
        return "only an emulator in sandbox has this path: check --url (EXTCLI_URL)"
    if status == 404 and not response.headers.get("content-type", "").startswith("application/json"):
        return "check that --url (EXTCLI_URL) is an extension service"
    if status == RATE_LIMITED:
        after = retry_after(response.headers.get("retry-after"))
        return "retry later, at a lower rate" if after is None else f"retry in {after:.0f} s, at a lower rate"
    if status == 400:
        unchanged = "" if call.method == "GET" else "nothing was changed"
        return "; ".join(filter(None, (unchanged, _correction(call, response))))
    return ""


def _correction(call: Call, response: Response) -> str:
    """Return how to correct a call that was refused with 400, if the response says it."""
    if response.headers.get(CODE) == "callers.no_channel":
        return "add --channel ID"
    if member_of(response.content, "reason") == "poll is closed" and "id" in call.query:  # ruling P4
        return f"`extcli vote config {visible(str(call.query['id']))}` shows its times, and whether it is disabled"
    return ""


_SUSPICION_SECONDS = 0.25
"""The timeout of the head of the response, and again of its body. To connect on this machine takes no time."""


def _hint_of_faults(url: str) -> str:
    """Return a hint that faults have acted, and how to list them; empty if none have, or if that is unknown."""
    if not is_loopback(urlsplit(url).hostname or ""):
        return ""
    http = Http(url, timeout=_SUSPICION_SECONDS, trace=None)
    try:
        faults = bounded_json.decoded(http.send("GET", f"{CONTROL}faults").content)["faults"]
        count = sum(each["hits"] > 0 for each in faults)
    except (CliError, KeyError, TypeError, ValueError):  # not a sandbox, or too slow
        return ""
    finally:
        http.close()
    if not count:
        return ""
    return f"perhaps on purpose: {count} fault{'s have' if count > 1 else ' has'} acted; see `extcli fault list`"
