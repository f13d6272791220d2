"""What an action is: a name and target of the socket's protocol, with the function that keeps its promise.

Features declare actions, and feeds: what can be subscribed to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from emulator.callers import ANYONE, Caller, Role
from emulator.engines.base import Key
from emulator.errors import Unauthorized
from emulator.realtime.envelope import Request
from emulator.wire import json_codec

if TYPE_CHECKING:
    from emulator.realtime.session import Session

S = TypeVar("S")
T = TypeVar("T")


class Message:
    """One request, as an action sees it: who asks, and what for."""

    __slots__ = ("request", "session")

    def __init__(self, session: Session, request: Request) -> None:
        self.session = session
        self.request = request

    @property
    def caller(self) -> Caller:
        """Who asks; raises `Unauthorized` before authentication (ruling X3)."""
        if self.session.caller is None:
            raise Unauthorized(
                "Unauthorized", "authenticate first: until then only authenticate, and subscribe to authentication"
            )
        return self.session.caller

    @property
    def channel(self) -> str | None:
        """The channel that this is about; `None` for all together (ruling A4)."""
        return self.caller.channel()

    @property
    def target(self) -> str:
        """The target as it was sent."""
        return self.request.target

    def body(self, shape: type[T]) -> T:
        """`data`, read as `shape`; raises `BadRequest` naming the member that does not fit."""
        return json_codec.convert(self.request.data, shape, inside="data")


Answer = Callable[[Message], Awaitable[object]]
Topics = Callable[[Message], Awaitable[tuple[Key, ...]]]


@dataclass(frozen=True)
class Action(Generic[S]):
    """One or more names with the function that answers them; `S` is the feature's service."""

    names: tuple[tuple[str, str], ...]
    """Pairs of action and target; the first is what the present client says."""
    handler: Callable[[S, Message], Awaitable[object]]
    roles: frozenset[Role]
    is_open: bool
    """Whether it needs no authentication."""

    def bind(self, service: S) -> BoundAction:
        """This action, answered by `service`."""
        return BoundAction(self.names, self.roles, self.is_open, partial(self.handler, service))


@dataclass(frozen=True)
class BoundAction:
    """An action with the service that stands behind it."""

    names: tuple[tuple[str, str], ...]
    roles: frozenset[Role]
    is_open: bool
    answer: Answer = field(repr=False)


@dataclass(frozen=True)
class Feed(Generic[S]):
    """Something that can be subscribed to: a target, and which topics a request means by it."""

    targets: tuple[str, ...]
    handler: Callable[[S, Message], Awaitable[tuple[Key, ...]]]
    roles: frozenset[Role]
    is_open: bool

    def bind(self, service: S) -> BoundFeed:
        """This feed, whose topics `service` knows."""
        return BoundFeed(self.targets, self.roles, self.is_open, partial(self.handler, service))


@dataclass(frozen=True)
class BoundFeed:
    """A feed with the service that stands behind it."""

    targets: tuple[str, ...]
    roles: frozenset[Role]
    is_open: bool
    topics: Topics = field(repr=False)


def action(
    name: str,
    target: str = "",
    *,
    roles: frozenset[Role] = ANYONE,
    aliases: tuple[tuple[str, str], ...] = (),
    is_open: bool = False,
) -> Callable[[Callable[[S, Message], Awaitable[object]]], Action[S]]:
    """Declare the decorated function to answer an action on a target; `aliases` are older names of the same.

    The function returns the reply's `data`, an object, or raises a `ServiceError`.
    """

    def declare(handler: Callable[[S, Message], Awaitable[object]]) -> Action[S]:
        return Action(((name, target), *aliases), handler, roles, is_open)

    return declare


def feed(
    *targets: str, roles: frozenset[Role] = ANYONE, is_open: bool = False
) -> Callable[[Callable[[S, Message], Awaitable[tuple[Key, ...]]]], Feed[S]]:
    """Declare the decorated function to say which topic a subscription to one of these targets follows."""

    def declare(handler: Callable[[S, Message], Awaitable[tuple[Key, ...]]]) -> Feed[S]:
        return Feed(targets, handler, roles, is_open)

    return declare
