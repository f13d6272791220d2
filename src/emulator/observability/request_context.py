"""What the current task serves: the namespace, and the request with its id and caller. Log lines carry both."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from emulator.callers import Caller
from emulator.errors import ServiceError
from emulator.journal import is_probe

REQUEST_ID: Final = b"x-request-id"
MARK: Final = b"x-emulator-mark"
PRODUCTION: Final = b"x-emulator-production"
FAULT: Final = b"x-emulator-fault"
HINT: Final = b"x-emulator-hint"
CODE: Final = b"x-emulator-code"
"""The header with the code of a declared refusal, such as `votes.poll_closed`. Only the sandbox sends it."""
DEFAULT_NAMESPACE: Final = "default"
"""The namespace of the plain paths."""
_VALID_ID: Final = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,64}")
_KEY: Final = "request_context"
_process: Final = secrets.token_hex(4)
_numbers: Final = count(1)


@dataclass(slots=True)
class RequestContext:
    """One request, as far as it is known."""

    id: str
    route: str = ""
    """The path of its endpoint, as declared; empty if unknown."""
    caller: Caller | None = None
    """The caller, once the credential is read."""
    headers: Mapping[bytes, bytes] | None = None
    """Its headers by lower-case name; `None` outside the HTTP protocol."""
    early_error: ServiceError | None = None
    """The error sent before the request body was complete; its handler sees a disconnect."""
    mark: int = 0
    """The mark of the latest change when the request had its effect (`changes.py`); 0 if unknown."""
    production: str = ""
    """What production would do differently: the header `X-Emulator-Production`; empty if nothing is known."""
    fault: str = ""
    """The faults that act on it: the header `X-Emulator-Fault`; empty for none."""
    hint: str = ""
    """What the caller probably meant (`hints.py`); empty in production."""
    is_inner: bool = False
    """Whether the service made the request itself, for `POST /_emulator/call`, with a token of its own."""

    @property
    def is_probe(self) -> bool:
        """Whether a tool made the request for itself."""
        return is_probe(self.id)

    @property
    def hint_header(self) -> bytes:
        """The header `X-Emulator-Hint`: ASCII, with escapes for other characters."""
        return self.hint.encode("ascii", "backslashreplace")


current: Final[ContextVar[RequestContext | None]] = ContextVar("request_context", default=None)
"""The context of the current task, `None` outside requests."""
namespace: Final[ContextVar[str]] = ContextVar("namespace", default="")
"""The namespace that the current task works for, also outside requests; empty for `default`."""


@contextmanager
def in_namespace(name: str) -> Iterator[None]:
    """Name a namespace in log records of this block, and of tasks that start in it; `default` has no name."""
    token = namespace.set(label_of(name))
    try:
        yield
    finally:
        namespace.reset(token)


def label_of(name: str) -> str:
    """Return what log records name a namespace: nothing for `default`."""
    return "" if name == DEFAULT_NAMESPACE else name


def request_id(headers: Mapping[bytes, bytes]) -> str:
    """Return the caller's `X-Request-Id` if it is valid, else a new id."""
    given = headers.get(REQUEST_ID)
    if given is not None and _VALID_ID.fullmatch(given):
        return given.decode("ascii")
    return f"{_process}-{next(_numbers)}"


def attach_context(state: dict[str, Any], context: RequestContext) -> None:
    state[_KEY] = context


def context_of(scope: Mapping[str, Any]) -> RequestContext:
    context: RequestContext = scope["state"][_KEY]
    return context


def bind_context(scope: Mapping[str, Any]) -> RequestContext:
    """Make the context of an ASGI scope the current one, and return it."""
    context = context_of(scope)
    current.set(context)
    return context


def detached() -> AbstractContextManager[None]:
    """Leave the request for a block that starts tasks which may outlive it."""
    return bound_to(None)


@contextmanager
def bound_to(context: RequestContext | None) -> Iterator[None]:
    """Bind log records in this block to the request."""
    token = current.set(context)
    try:
        yield
    finally:
        current.reset(token)
