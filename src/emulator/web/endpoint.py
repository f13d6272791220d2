"""What an endpoint is: one line of the specification's tables, with the function that keeps its promise.

Features declare endpoints; from the declarations come the Litestar routes, the OpenAPI document, the table of roles
and the short way of the hot routes, so none of these can disagree with another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Generic, TypeVar

import msgspec

from emulator.callers import Role
from emulator.web.call import Call

S = TypeVar("S")


class Audience(Enum):
    """Who may reach an endpoint, before roles."""

    CLIENTS = "clients"
    """Extensions and games, from any web page; a credential is needed."""
    CLIENT_ID = "client_id"
    """The same, who need only say their client id: in the header, with or without a token, or in the body."""
    PUBLIC = "public"
    """The same without a credential."""
    MONITORING = "monitoring"
    """Whoever keeps the service running; no credential, both environments."""
    CONTROL = "control"
    """The control API: sandbox only, loopback only, never a web page."""


@dataclass(frozen=True)
class Parameter:
    """A query parameter."""

    name: str
    meaning: str
    kind: str = "string"
    """Its JSON Schema type."""


class Nothing(msgspec.Struct):
    """An empty object: there is nothing to say."""


@dataclass(frozen=True)
class Streamed:
    """An answer that is sent piece by piece."""

    chunks: AsyncIterator[bytes]


@dataclass(frozen=True)
class Text:
    """An answer that is not JSON."""

    body: bytes
    content_type: str


class JavaScript(str):
    """What the document shows of a `Text` that is a script; of any other it shows `str`."""

    __slots__ = ()


@dataclass(frozen=True)
class Endpoint(Generic[S]):
    """A method and path with the function that answers it; `S` is the feature's service."""

    method: str
    path: str
    handler: Callable[[S, Call], Awaitable[object]]
    roles: frozenset[Role]
    audience: Audience
    body: object | None
    answer: object
    query: tuple[Parameter, ...]
    limit: str
    """The field of `Limits` that bounds its body."""
    streamed: bool
    """Whether the body is left to the handler, to be read as it comes."""

    @property
    def name(self) -> str:
        """The handler's name: the same verb and noun as in client, command and test."""
        return self.handler.__name__

    def bind(self, service: S) -> Bound:
        """This endpoint, answered by `service`."""
        return Bound(self, partial(self.handler, service))


@dataclass(frozen=True)
class Bound:
    """An endpoint with the service that stands behind it."""

    endpoint: Endpoint[object] = field(repr=False)
    answer: Callable[[Call], Awaitable[object]]

    def __init__(self, endpoint: Endpoint[S], answer: Callable[[Call], Awaitable[object]]) -> None:
        object.__setattr__(self, "endpoint", endpoint)
        object.__setattr__(self, "answer", answer)


def endpoint(
    method: str,
    path: str,
    *,
    roles: frozenset[Role] = frozenset(),
    audience: Audience = Audience.CLIENTS,
    body: object | None = None,
    answer: object = Nothing,
    query: tuple[Parameter, ...] = (),
    limit: str = "body",
    streamed: bool = False,
) -> Callable[[Callable[[S, Call], Awaitable[object]]], Endpoint[S]]:
    """Declare the decorated function to answer `method path`.

    `roles` are those that may call; `body` and `answer` are the types that the OpenAPI document shows. The function
    returns what is to be encoded, a `Streamed` or a `Text`, or raises a `ServiceError`.
    """

    def declare(handler: Callable[[S, Call], Awaitable[object]]) -> Endpoint[S]:
        return Endpoint(method, path, handler, roles, audience, body, answer, query, limit, streamed)

    return declare
