"""What is being worked on. Each request has an id, which its answer and every line of the log about it carry."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from emulator.callers import Caller
from emulator.errors import ServiceError

REQUEST_ID: Final = b"x-request-id"
"""The header that brings an id, and that carries it back."""
_TAKEN: Final = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,64}")
_KEY: Final = "errand"
_process: Final = secrets.token_hex(4)
_numbers: Final = count(1)


@dataclass(slots=True)
class RequestContext:
    """One request, and what has been learned of it so far."""

    id: str
    route: str = ""
    """The path of its endpoint, as declared; empty while it is not known, or where there is none."""
    caller: Caller | None = None
    """Who asks, once the credential has been read."""
    cut: ServiceError | None = None
    """What it was answered before all of it had come; whoever works on it hears of an end of the connection."""


current: Final[ContextVar[RequestContext | None]] = ContextVar("errand", default=None)
"""The one that this task is about."""


def request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The id that a request brings, if it is one to be kept; a fresh one otherwise."""
    for name, value in headers:
        if name == REQUEST_ID and _TAKEN.fullmatch(value):
            return value.decode("ascii")
    return f"{_process}-{next(_numbers)}"


def attach_context(state: dict[str, Any], context: RequestContext) -> None:
    """Put it into the state of an ASGI scope, for the application to take up."""
    state[_KEY] = context


def context_of(scope: Mapping[str, Any]) -> RequestContext:
    """That of the request of this scope."""
    context: RequestContext = scope["state"][_KEY]
    return context


def bind_context(scope: Mapping[str, Any]) -> RequestContext:
    """Have this task be about the request of this scope."""
    context = context_of(scope)
    current.set(context)
    return context


def detached() -> AbstractContextManager[None]:
    """Let what is begun in the block, and may outlive the request, be about no request."""
    return about(None)


@contextmanager
def about(context: RequestContext | None) -> Iterator[None]:
    """Let what is said in the block be about this request."""
    token = current.set(context)
    try:
        yield
    finally:
        current.reset(token)
