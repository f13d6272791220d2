"""Declarations of WebSocket actions, which reply to requests, and feeds, which clients subscribe to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from emulator.core.callers import ANYONE, Caller, Role
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.realtime.envelope import Request
from emulator.realtime.refusals import not_authenticated

if TYPE_CHECKING:
    from emulator.realtime.session import Session

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
class Declaration:
    """The names of an action or a feed, with their handler, which takes the feature's service unless it is bound."""

    names: tuple[Any, ...]
    """Of an action, pairs of action and target; current clients send the first. Of a feed, the targets."""
    handler: Callable[..., Awaitable[Any]] = field(repr=False)
    """Of an action, it returns the data of the reply, of a feed the topics of a subscription."""
    roles: frozenset[Role]
    is_open: bool
    """Whether it is allowed before authentication."""
    secrets: frozenset[str] = frozenset()
    """The members of the request and of the reply that the journal hides."""

    def bind(self, service: object) -> Declaration:
        """Return this declaration with a handler that takes the message only."""
        return replace(self, handler=partial(self.handler, service))


def action(
    name: str,
    target: str = "",
    *,
    roles: frozenset[Role] = ANYONE,
    aliases: tuple[tuple[str, str], ...] = (),
    is_open: bool = False,
    secrets: frozenset[str] = frozenset(),
) -> Callable[[Callable[[Any, Message], Awaitable[object]]], Declaration]:
    """Declare the decorated function as the handler of an action. It returns the reply's `data`, an object."""
    return partial(Declaration, ((name, target), *aliases), roles=roles, is_open=is_open, secrets=secrets)


def feed(
    *targets: str, roles: frozenset[Role] = ANYONE, is_open: bool = False
) -> Callable[[Callable[[Any, Message], Awaitable[tuple[Key, ...]]]], Declaration]:
    """Declare the decorated function as the one that returns the topics of a subscription to these targets."""
    return partial(Declaration, targets, roles=roles, is_open=is_open)
