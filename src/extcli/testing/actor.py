"""Viewers, broadcasters and backends: callers with tokens of their own, and how their operations call a service.

Each operation is written once, for blocking and for asynchronous tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from extcli import bounded_json
from extcli.api.call import SERVICE, Call, encoded
from extcli.api.client import Service
from extcli.api.control import Control
from extcli.api.http import Http, Response
from extcli.api.signed_calls import CallsWithCredentials
from extcli.api.token_sources import Credentials, SandboxTokens, SignedByServiceClock
from extcli.config.settings import Identity
from extcli.errors import CliError, ErrorResponse
from extcli.reading.shapes import document_of
from extcli.reading.streams import limit_size

Json = dict[str, Any]


class Blocking:
    """Marks the objects of the fixture `extcli`: their operations return results."""


class Awaited:
    """Marks the objects of the fixture `extcli_async`: their operations return awaitables."""


ModeT = TypeVar("ModeT", Blocking, Awaited)
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT")
ErrorT = TypeVar("ErrorT", bound=CliError)
P = ParamSpec("P")


class Part(Generic[ModeT]):
    """Base class of objects with operations."""

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
        """Call the method, and remove this file from an error's traceback, so that it begins in the test."""
        __tracebackhide__ = True
        try:
            return self._method(part, *args, **named)
        except (CliError, AssertionError) as error:
            raise error.with_traceback(None) from None


TIMEOUT = 90.0
"""Seconds for any response. The service holds a request for up to 60."""


class Calls(CallsWithCredentials):
    """The calls of one caller. Errors carry the reason of the service as a note, which pytest prints."""

    def __init__(self, http: Http, client_id: str = "", credentials: Credentials | None = None) -> None:
        super().__init__(http, credentials)
        self._client_id = client_id

    @property
    def authorization(self) -> str:
        """The value of the header `Authorization`; empty without credentials."""
        return self._authorization(self._credentials) if self._credentials else ""

    def _authorization(self, credentials: Credentials) -> str:
        return f"{self._client_id} {credentials.token()}"

    def _error_of(self, call: Call, response: Response, credentials: Credentials | None) -> ErrorResponse:
        return with_note(super()._error_of(call, response, credentials))


def with_note(error: ErrorT) -> ErrorT:
    """Return the error with the service's reason as a note, which pytest prints."""
    if error.why:
        error.add_note(error.why)
    return error


def signed_calls(
    http: Http, client_id: str, role: str, user: str | None, channel: str | None, secret: bytes | None
) -> Calls:
    """Return calls with tokens of this identity: signed with the `secret`, otherwise issued by the sandbox."""
    identity = Identity(role, user)
    if secret is None:
        return Calls(http, client_id, SandboxTokens(client_id, identity, channel, http, for_helper=True))
    advice = f"is EXTCLI_SECRET_FILE the secret of client id {client_id}?"
    return Calls(http, client_id, SignedByServiceClock(secret, identity, channel, http, advice=advice))


def control(http: Http) -> Control:
    """Return the control API of a namespace."""
    return Control(Calls(http))


def document(response: Response) -> Any:
    """Return the JSON document of a response."""
    return document_of(response, object)


class Actor(Part[ModeT]):
    """One caller. Each operation is one request and returns the service's JSON.

    A refusal raises `Refused`, with the `status` of the response.
    """

    def __init__(self, calls: Calls, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._calls = calls
        self._service = Service(calls)

    @operation
    def headers(self) -> dict[str, str]:
        """Return the headers with which your own code can send a request as this caller."""
        return {"Authorization": self._calls.authorization}

    @operation
    def request(self, method: str, path: str, body: object = None, /, **query: Any) -> Any:
        """Make any request, for example `request("GET", "user_info")`. `path` is below `/v1/e/`."""
        content = None if body is None else encoded(body)
        response = self._service.perform(Call(method, f"{SERVICE}{path}", query, content))
        return document(response) if response.content else None

    # Polls

    @operation
    def vote(self, poll: str, value: int, *, count: int | None = None) -> Json:
        """Cast a vote, and return the poll's statistics after it."""
        return _object(self._service.cast_vote(value, poll=poll, count=count))

    @operation
    def poll(self, poll: str) -> Json:
        """Read the statistics of a poll."""
        return _object(self._service.read_poll(poll))

    @operation
    def define_poll(self, poll: str, config: Mapping[str, Any]) -> None:
        """Replace the definition of a poll."""
        self._service.define_poll(poll, config)

    @operation
    def clear_poll(self, poll: str) -> None:
        """Delete the votes of a poll."""
        self._service.clear_poll(poll)

    # Rankings and buffers

    @operation
    def submit(self, ranking: str, key: str) -> Json:
        """Submit an answer to a ranking."""
        return _object(self._service.submit_answer(key, ranking=ranking))

    @operation
    def ranking(self, ranking: str) -> Json:
        """Read a ranking."""
        return _object(self._service.read_ranking(ranking))

    @operation
    def clear_ranking(self, ranking: str) -> None:
        """Delete the answers of a ranking."""
        self._service.clear_ranking(ranking)

    @operation
    def add(self, buffer: str, entry: object) -> None:
        """Add an entry to an accumulation buffer."""
        self._service.add_to_buffer(encoded(entry), buffer=buffer)

    @operation
    def buffer(self, buffer: str, *, start: int = 0) -> Json:
        """Read the entries of an accumulation buffer, from `start` (Unix ms)."""
        with self._service.read_buffer(buffer, start=start) as response:
            return dict(bounded_json.decoded(b"".join(limit_size(response.iter_bytes(), f"buffer {buffer}"))))

    # Stores, by the last part of their path: extension_state, channel_config, viewer_state, …

    @operation
    def store(self, store: str) -> Json:
        """Read a store."""
        return _object(self._service.read_store(store))

    @operation
    def set_store(self, store: str, value: object) -> None:
        """Replace a store."""
        self._service.replace_store(store, value)

    @operation
    def patch_store(self, store: str, patch: object) -> None:
        """Change a store by a JSON Patch."""
        self._service.patch_store(store, patch)

    @operation
    def json_store(self, store: str) -> Any:
        """Read a JSON store."""
        return document(self._service.read_json_store(store))

    @operation
    def set_json_store(self, store: str, value: object) -> None:
        """Replace a JSON store."""
        self._service.replace_json_store(store, value)

    # Codes, broadcasts and PINs

    @operation
    def define_codes(self, sets: object) -> None:
        """Replace the reward codes."""
        self._service.define_codes(encoded(sets))

    @operation
    def eligibility(self) -> Any:
        """Read which codes this viewer may redeem."""
        return document(self._service.read_eligibility())

    @operation
    def redeem(self, prize: int) -> Json:
        """Redeem a code of the set at this index."""
        return _object(self._service.redeem_code(prize))

    @operation
    def broadcast(self, event: str, data: object, *, target: str = "broadcast") -> None:
        """Send an event to the pages and games of the channel."""
        self._service.broadcast(event, data, target=target, channel=None, method="POST")

    @operation
    def pin(self) -> str:
        """Request a PIN that links a game to the channel."""
        return str(document(self._service.request_pin())["pin"])


def _object(response: Any) -> Json:
    return dict(document(response))
