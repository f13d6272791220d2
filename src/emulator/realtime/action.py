"""Declarations of WebSocket actions, which reply to requests, and feeds, which clients subscribe to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from emulator.callers import ANYONE, Caller, Role
from emulator.engines.shapes import Key
from emulator.realtime.envelope import Request
from emulator.realtime.refusals import not_authenticated
from emulator.wire import json_codec

if TYPE_CHECKING:
    from emulator.realtime.session import Session

S = TypeVar("S")
N = TypeVar("N")
T = TypeVar("T")


class Done(Struct):
    """The reply `{"ok": true}`."""

    ok: bool = True


@dataclass(slots=True, eq=False, repr=False)
class Message:
    """One request as an action sees it."""

    session: Session
    request: Request
    sender: Caller | None
    """The connection's caller; `None` before authentication."""

    @property
    def caller(self) -> Caller:
        """The authenticated caller; raises `Unauthorized` before authentication (ruling X3)."""
        if self.sender is None:
            raise not_authenticated()
        return self.sender

    @property
    def channel(self) -> str | None:
        """The channel that the request acts on; `None` for all channels (ruling A4)."""
        return self.caller.channel()

    @property
    def target(self) -> str:
        return self.request.target

    def body(self, shape: type[T]) -> T:
        """`data` decoded as `shape`; raises `BadRequest` naming the invalid member."""
        return json_codec.convert(self.request.data, shape, inside="data")


@dataclass(frozen=True)
class Bound(Generic[N, T]):
    """An action or a feed, bound to the service of its feature."""

    names: tuple[N, ...]
    roles: frozenset[Role]
    is_open: bool
    secrets: frozenset[str]
    handler: Callable[[Message], Awaitable[T]] = field(repr=False)


@dataclass(frozen=True)
class Declared(Generic[S, N, T]):
    """The names of an action or a feed, with their handler; `S` is the feature's service."""

    names: tuple[N, ...]
    handler: Callable[[S, Message], Awaitable[T]]
    roles: frozenset[Role]
    is_open: bool
    """Whether it is allowed before authentication."""
    secrets: frozenset[str] = frozenset()
    """The members of the request and of the reply that the journal hides."""

    def bind(self, service: S) -> Bound[N, T]:
        return Bound(self.names, self.roles, self.is_open, self.secrets, partial(self.handler, service))


Action = Declared[S, tuple[str, str], object]
"""Its names are pairs of action and target; current clients send the first."""
Feed = Declared[S, str, tuple[Key, ...]]
"""Its names are targets that clients can subscribe to; the handler returns the topics of a subscription."""
BoundAction = Bound[tuple[str, str], object]
BoundFeed = Bound[str, tuple[Key, ...]]


def action(
    name: str,
    target: str = "",
    *,
    roles: frozenset[Role] = ANYONE,
    aliases: tuple[tuple[str, str], ...] = (),
    is_open: bool = False,
    secrets: frozenset[str] = frozenset(),
) -> Callable[[Callable[[S, Message], Awaitable[object]]], Action[S]]:
    """Declare the decorated function as the handler of an action. It returns the reply's `data`, an object."""

    def declare(handler: Callable[[S, Message], Awaitable[object]]) -> Action[S]:
        return Declared(((name, target), *aliases), handler, roles, is_open, secrets)

    return declare


def feed(
    *targets: str, roles: frozenset[Role] = ANYONE, is_open: bool = False
) -> Callable[[Callable[[S, Message], Awaitable[tuple[Key, ...]]]], Feed[S]]:
    """Declare the decorated function as the one that returns the topics of a subscription to these targets."""

    def declare(handler: Callable[[S, Message], Awaitable[tuple[Key, ...]]]) -> Feed[S]:
        return Declared(targets, handler, roles, is_open)

    return declare
