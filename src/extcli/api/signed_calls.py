"""Sends the calls of a command, and turns error responses into errors with advice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from emulator.contract.names import CODE, HINT, MARK
from emulator.contract.shell import quoted
from extcli.api.call import Call
from extcli.api.http import RESPONSE, Http, Response
from extcli.api.retry import RATE_LIMITED, retry_after
from extcli.api.token_sources import Credentials
from extcli.config.resolver import Resolver
from extcli.errors import (
    FORBIDDEN,
    ErrorResponse,
    Refused,
    ServerError,
    member_of,
)

if TYPE_CHECKING:
    from extcli.api.dry_run import DryRun

_READERS = ("/_emulator/explain", "/_emulator/journal")
"""Paths that the journal does not record."""


class CallsWithCredentials(ABC):
    """Sends calls, and again with a new token if a sandbox refuses one as expired."""

    _is_probe = False

    def __init__(self, http: Http, credentials: Credentials | None) -> None:
        self._http = http
        self._credentials = credentials

    def probing(self) -> Self:
        """Return the sender of requests that extcli makes for itself, which the journal leaves out."""
        other = copy(self)
        other._is_probe = True
        return other

    def perform(self, call: Call) -> Response:
        """Send a call and return its whole response. Raises `ErrorResponse` or `Unreachable`."""
        with self._response(call, RESPONSE) as response:
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
            with self._http.stream(
                call.method,
                call.path,
                query=call.query,
                body=call.body,
                authorization=self._authorization(credentials) if credentials else None,
                is_probe=self._is_probe,
                limit=limit,
            ) as response:
                if response.status_code < 300:
                    yield response
                    return
                response.read()
                if not (may_renew and credentials and is_expired(response) and credentials.renew()):
                    raise self._error_of(call, response, credentials)

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
        return f"`extcli vote config {quoted(str(call.query['id']))}` shows its times, and whether it is disabled"
    return ""
