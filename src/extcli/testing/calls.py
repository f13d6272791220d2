"""How operations call a service: each is written once, for blocking and for asynchronous tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from extcli.api import bodies
from extcli.api.call import Call
from extcli.api.control import Control
from extcli.api.http import Answer, Http
from extcli.api.signed_calls import error_of, is_expired
from extcli.api.token_sources import Credentials, SandboxTokens, SignedByServiceClock
from extcli.config.settings import Identity
from extcli.errors import CliError
from extcli.reading.shapes import document_of


class Blocking:
    """Marks the objects of the fixture `extcli`: their operations return results."""


class Awaited:
    """Marks the objects of the fixture `extcli_async`: their operations return awaitables."""


ModeT = TypeVar("ModeT", Blocking, Awaited)
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT")
P = ParamSpec("P")


class Part(Generic[ModeT]):
    """An object with operations."""

    def __init__(self, *, awaited: bool) -> None:
        self.awaited = awaited


class operation(Generic[PartT, P, ResultT]):
    """A method of a `Part`. For `extcli_async` it runs in a thread, and calling it returns an awaitable."""

    def __init__(self, method: Callable[Concatenate[PartT, P], ResultT]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    @overload
    def __get__(self, part: None, owner: type) -> Self: ...
    @overload
    def __get__(self, part: Part[Blocking], owner: type) -> Callable[P, ResultT]: ...
    @overload
    def __get__(self, part: Part[Awaited], owner: type) -> Callable[P, Coroutine[Any, Any, ResultT]]: ...
    def __get__(self, part: Any, owner: type) -> Any:
        if part is None:
            return self
        method = partial(self._run, part)
        return partial(asyncio.to_thread, method) if part.awaited else method

    def _run(self, part: PartT, /, *args: P.args, **named: P.kwargs) -> ResultT:
        """Call the method. The traceback of an error begins in the test."""
        __tracebackhide__ = True
        try:
            return self._method(part, *args, **named)
        except (CliError, AssertionError) as error:
            raise error.with_traceback(None) from None


TIMEOUT = 90.0
"""Seconds for any answer. The service holds a request for up to 60."""


class Calls:
    """Implements `call.Caller`. Errors carry the reason of the service as a note, which pytest prints."""

    def __init__(self, http: Http, client_id: str = "", credentials: Credentials | None = None) -> None:
        self._http = http
        self._client_id = client_id
        self._credentials = credentials

    @property
    def authorization(self) -> str:
        """The value of the header `Authorization`; empty without credentials."""
        return f"{self._client_id} {self._credentials.token()}" if self._credentials else ""

    def perform(self, call: Call) -> Answer:
        """Send a call and return its whole answer. Raises `Refused`, `ServerError` or `Unreachable`."""
        with self._answer(call, bodies.ANSWER) as answer:
            answer.read()
            return answer

    @contextmanager
    def stream(self, call: Call) -> Iterator[Answer]:
        """Send a call and yield its answer, the body unread and not limited as a whole."""
        with self._answer(call, None) as answer:
            yield answer

    @contextmanager
    def _answer(self, call: Call, limit: int | None) -> Iterator[Answer]:
        """Send a call and yield its answer; once more if the clock was moved past the end of the token."""
        with self._sent(call, limit) as answer:
            if not self._may_renew(call, answer):
                yield self._checked(call, answer)
                return
        with self._sent(call, limit) as answer:
            yield self._checked(call, answer)

    def _sent(self, call: Call, limit: int | None) -> Any:
        authorization = self.authorization if call.signed else ""
        return self._http.stream(
            call.method,
            call.path,
            query=call.query,
            body=call.body,
            authorization=authorization or None,
            is_probe=call.is_probe,
            limit=limit,
        )

    def _may_renew(self, call: Call, answer: Answer) -> bool:
        if not self._credentials or not call.signed or not is_expired(answer):
            return False
        answer.read()
        return self._credentials.renew()

    def _checked(self, call: Call, answer: Answer) -> Answer:
        if answer.status_code < 300:
            return answer
        answer.read()
        raise noted(error_of(call, answer, self._credentials))


def noted(error: CliError) -> CliError:
    """Add the reason of an error to its text in pytest."""
    if error.why:
        error.add_note(error.why)
    return error


def signed_calls(
    http: Http, client_id: str, role: str, user: str | None, channel: str | None, secret: bytes | None
) -> Calls:
    """Return calls with tokens of this identity: signed with the extension's `secret`, else issued by the sandbox."""
    identity = Identity(role, user)
    if secret is None:
        return Calls(http, client_id, SandboxTokens(client_id, identity, channel, http, for_helper=True))
    advice = f"is EXTCLI_SECRET_FILE the secret of client id {client_id}?"
    return Calls(http, client_id, SignedByServiceClock(secret, identity, channel, http, advice=advice))


def control(http: Http) -> Control:
    """Return the control API of a namespace."""
    return Control(Calls(http))


def document(answer: Answer) -> Any:
    """Return the JSON document of an answer."""
    return document_of(answer, object)
