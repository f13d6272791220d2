"""Who calls a service in a test: viewers, broadcasters and backends with tokens of their own, games and pages.

Each operation is written once, for blocking and for asynchronous tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload

from extcli import clock
from extcli.api.call import answer_submission, buffer_addition, encoded, vote_cast
from extcli.api.client import Service
from extcli.api.http import Response
from extcli.api.websocket import WebSocketClient
from extcli.config.settings import DEFAULT_PIN_PATH
from extcli.errors import CliError, Refused
from extcli.reading import Json, document_of

TIMEOUT = 5.0
"""Seconds to wait, unless a test gives another time; the service allows up to 60. With 0 it is an assertion."""


class Blocking:
    """Marks the objects of the fixture `extcli`: their operations return results."""


class Awaited:
    """Marks the objects of the fixture `extcli_async`: their operations return awaitables."""


ModeT = TypeVar("ModeT", Blocking, Awaited)
PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT")
P = ParamSpec("P")


@dataclass(eq=False, repr=False)
class Part(Generic[ModeT]):
    """Base class of objects with operations."""

    awaited: bool = field(kw_only=True)


class operation(Generic[PartT, P, ResultT]):
    """A method of a `Part`. For `extcli_async` it runs in a thread, and calling it returns an awaitable."""

    def __init__(self, method: Callable[Concatenate[PartT, P], ResultT]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    @overload
    def __get__(self, part: Part[Blocking], owner: type) -> Callable[P, ResultT]: ...
    @overload
    def __get__(self, part: Part[Awaited], owner: type) -> Callable[P, Coroutine[Any, Any, ResultT]]: ...
    def __get__(self, part: Any, owner: type) -> Any:
        method = partial(self._run, part)
        return partial(asyncio.to_thread, method) if part and part.awaited else method

    def _run(self, part: PartT, /, *args: P.args, **named: P.kwargs) -> ResultT:
        """Call the method. An error begins in the test, and has the service's reason as a note, which pytest prints."""
        __tracebackhide__ = True
        try:
            return self._method(part, *args, **named)
        except (CliError, AssertionError) as error:
            if isinstance(error, CliError) and error.why:
                error.add_note(error.why)
            raise error.with_traceback(None) from None


def json_body(response: Response) -> Json:
    """Return the JSON object of a response."""
    return dict(document_of(response))


@dataclass(eq=False, repr=False)
class Actor(Part[ModeT]):
    """One caller. Each operation is one request and returns the service's JSON.

    A refusal raises `Refused`, with the `status` of the response.
    """

    _service: Service

    @operation
    def headers(self) -> dict[str, str]:
        """Return the headers with which your own code can send a request as this caller."""
        return {"Authorization": self._service.authorization}

    @operation
    def request(self, method: str, path: str, body: object = None, /, **query: Any) -> Any:
        """Make any request, for example `request("GET", "user_info")`. `path` is below `/v1/e/`."""
        response = self._service.send(method, path, None if body is None else encoded(body), **query)
        return document_of(response, object) if response.content else None

    # Polls

    @operation
    def vote(self, poll: str, value: int, *, count: int | None = None) -> Json:
        """Cast a vote, and return the poll's statistics after it."""
        return json_body(self._service.perform(vote_cast(value, poll=poll, count=count)))

    @operation
    def poll(self, poll: str) -> Json:
        """Read the statistics of a poll."""
        return json_body(self._service.get("vote", id=poll))

    @operation
    def define_poll(self, poll: str, config: Mapping[str, Any]) -> None:
        """Replace the definition of a poll."""
        self._service.define_poll(poll, config)

    @operation
    def clear_poll(self, poll: str) -> None:
        """Delete the votes of a poll."""
        self._service.delete("vote", id=poll)

    # Rankings and buffers

    @operation
    def submit(self, ranking: str, key: str) -> Json:
        """Submit an answer to a ranking."""
        return json_body(self._service.perform(answer_submission(key, ranking=ranking)))

    @operation
    def ranking(self, ranking: str) -> Json:
        """Read a ranking."""
        return json_body(self._service.get("rank", id=ranking))

    @operation
    def clear_ranking(self, ranking: str) -> None:
        """Delete the answers of a ranking."""
        self._service.delete("rank", id=ranking)

    @operation
    def add(self, buffer: str, entry: object) -> None:
        """Add an entry to an accumulation buffer."""
        self._service.perform(buffer_addition(encoded(entry), buffer=buffer))

    @operation
    def buffer(self, buffer: str, *, start: int = 0) -> Json:
        """Read the entries of an accumulation buffer, from `start` (Unix ms)."""
        return json_body(self._service.get("accumulate", id=buffer, start=start))

    # Stores, by the last part of their path: extension_state, channel_config, viewer_state, …

    @operation
    def store(self, store: str) -> Json:
        """Read a store."""
        return json_body(self._service.get(store))

    @operation
    def set_store(self, store: str, value: object) -> None:
        """Replace a store."""
        self._service.post(store, value)

    @operation
    def patch_store(self, store: str, patch: object) -> None:
        """Change a store by a JSON Patch."""
        self._service.send("PATCH", store, encoded(patch))

    @operation
    def json_store(self, store: str) -> Any:
        """Read a JSON store."""
        return document_of(self._service.get("json_store", id=store), object)

    @operation
    def set_json_store(self, store: str, value: object) -> None:
        """Replace a JSON store."""
        self._service.post("json_store", value, id=store)

    # Codes, broadcasts and PINs

    @operation
    def define_codes(self, sets: object) -> None:
        """Replace the reward codes."""
        self._service.send("PUT", "codes", encoded(sets))

    @operation
    def eligibility(self) -> Any:
        """Read which codes this viewer may redeem."""
        return document_of(self._service.get("codes/eligibility"), object)

    @operation
    def redeem(self, prize: int) -> Json:
        """Redeem a code of the set at this index."""
        return json_body(self._service.post("codes/redeem", {"prize": prize}))

    @operation
    def broadcast(self, event: str, data: object, *, target: str = "broadcast") -> None:
        """Send an event to the pages and games of the channel."""
        self._service.broadcast(event, data, target=target, method="POST")

    @operation
    def pin(self) -> str:
        """Request a PIN that links a game to the channel."""
        return str(json_body(self._service.send("POST", DEFAULT_PIN_PATH))["pin"])


class Event(NamedTuple):
    """A broadcast event."""

    name: str
    data: Any


@dataclass(eq=False, repr=False)
class Game(Part[ModeT]):
    """The WebSocket of a game."""

    _socket: WebSocketClient

    @operation
    def request(self, action: str, target: str = "", data: object = None) -> Json:
        """Send a request, and return the data of its reply. Raises `Refused`."""
        return self._socket.request(action, target, data).data

    @operation
    def subscribe(self, target: str, topic: str = "") -> None:
        """Subscribe to updates: `subscribe("poll", "boss")`, `subscribe("broadcast", "round-over")`."""
        self._socket.request("subscribe", target, {"topic_id": topic} if topic else None)

    @operation
    def update(self, timeout: float = TIMEOUT) -> Json:
        """Return the next update, with `meta` and `data`. Raises `AssertionError` after `timeout` seconds."""
        message = self._socket.next_update(clock.elapsed() + timeout)
        assert message is not None, f"the game received no update within {timeout:g} s"
        return message.document

    @operation
    def close(self) -> None:
        """Close the connection. The end of the test also closes it."""
        self._socket.close()


@dataclass(eq=False, repr=False)
class Events(Part[ModeT]):
    """The events that a page of the extension receives."""

    _socket: WebSocketClient
    _names: tuple[str, ...]

    @operation
    def next(self, timeout: float = TIMEOUT) -> Event:
        """Wait for the next event. Raises `AssertionError` after `timeout` seconds."""
        event = self._next(clock.elapsed() + timeout)
        assert event is not None, f"no event {' or '.join(self._names)} within {timeout:g} s"
        return event

    @operation
    def received(self) -> list[Event]:
        """Return the events that were sent before this call, without those already returned."""
        # The reply comes after every update that the service sent before it.
        with suppress(Refused):
            self._socket.request("get", "state", {"state_id": "channel"})
        found: list[Event] = []
        while event := self._next(clock.elapsed()):
            found.append(event)
        return found

    def _next(self, deadline: float) -> Event | None:
        message = self._socket.next_update(deadline)
        if message is None:
            return None
        return Event(str(message.data.get("event", "")), message.data.get("data"))
