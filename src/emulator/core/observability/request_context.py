"""The context of the current task: the namespace, and the request with its id and caller. Log lines carry both."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from emulator.contract import names
from emulator.core.callers import Caller
from emulator.core.errors import ServiceError
from emulator.core.keys import Key

REQUEST_ID = b"x-request-id"
MARK, PRODUCTION, FAULT = names.MARK_HEADER.encode(), names.PRODUCTION_HEADER.encode(), names.FAULT_HEADER.encode()
HINT, CODE = names.HINT_HEADER.encode(), names.CODE_HEADER.encode()
DEFAULT_NAMESPACE = "default"
"""The namespace of the plain paths."""
_VALID_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,64}")
_LONGEST_HINT = 300
"""In characters."""
CONTEXT_KEY = "emulator.context"
"""The key of a request's context in an ASGI scope's state."""
_process_prefix = secrets.token_hex(4)
_request_numbers = count(1)


@dataclass(slots=True)
class RequestContext:
    """What is known of one request."""

    id: str
    route: str = ""
    """The path of its endpoint, as declared; empty if unknown."""
    caller: Caller | None = None
    """The caller, once the credential is read."""
    headers: Mapping[bytes, bytes] | None = None
    """Its headers by lower-case name; `None` outside the HTTP protocol."""
    is_head: bool = False
    """Whether it asks for the head of the response to GET (ruling W9)."""
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
    socket: int = 0
    """The number of its socket; 0 outside sockets."""
    namespace: str = ""
    """The name of its namespace in log records; empty for `default`."""
    delivery_fault: str = ""
    """The id of the fault that acts on its current broadcast; empty for none."""
    is_audited: bool = True
    """Whether the audit log has its changes: not of a scratch service, and not of the demo."""
    facts: dict[tuple[str, Key], None] = field(default_factory=dict)
    """What services noticed so far, in order (`facts.py`)."""

    def give_hint(self, text: str) -> None:
        """Give it a hint, unless it has one, in a form that a header can carry: cut, with unprintable text escaped."""
        if text and not self.hint:
            self.hint = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text[:_LONGEST_HINT])

    def sandbox_headers(self, mark: int) -> list[tuple[bytes, bytes]]:
        """Return the headers that only the sandbox adds to a response. `mark` is the latest change's."""
        mark = self.mark or mark
        found = [(MARK, b"%d" % mark)] if mark else []
        if self.production:
            found.append((PRODUCTION, self.production.encode()))
        if self.fault:
            found.append((FAULT, self.fault.encode()))
        if self.hint:
            found.append((HINT, self.hint.encode("ascii", "backslashreplace")))
        return found


current_request: ContextVar[RequestContext | None] = ContextVar("request_context", default=None)
"""The context of the current task. Outside requests, `None`, or one without id that names the task's namespace.

Only this folder and `parity.py` read it.
"""


def current() -> RequestContext:
    """Return the context of the current task; outside requests, perhaps a new one, which nothing else sees."""
    return current_request.get() or RequestContext("")


def in_namespace(name: str) -> AbstractContextManager[None]:
    """Add the namespace's name to log records in this block; `default` is not named."""
    return in_context(replace(current(), namespace=log_name(name)))


def enter_namespace(name: str) -> None:
    """Add the namespace's name to log records for the rest of the current request."""
    current().namespace = log_name(name)


def give_hint(text: str) -> None:
    """Give the current request a hint, unless it has one."""
    current().give_hint(text)


def add_fault(header: str) -> None:
    """Add a fault to the header `X-Emulator-Fault` of the current request."""
    context = current()
    context.fault = f"{context.fault}, {header}" if context.fault else header


def with_delivery_fault(fault: str) -> AbstractContextManager[None]:
    """Add a fault's id to the journal entries of deliveries in this block and in tasks that start in it."""
    return in_context(replace(current(), delivery_fault=fault))


def inner_context(production: str) -> RequestContext:
    """Return the context of a request that the service makes to itself during the current one.

    It has its own verdict.
    """
    outer = current()
    return RequestContext(
        outer.id, production=production, is_inner=True, namespace=outer.namespace, is_audited=outer.is_audited
    )


def log_name(name: str) -> str:
    """Return the name of a namespace in log records: empty for `default`."""
    return "" if name == DEFAULT_NAMESPACE else name


def request_id(headers: Mapping[bytes, bytes]) -> str:
    """Return the caller's `X-Request-Id` if it is valid, otherwise a new id."""
    given = headers.get(REQUEST_ID)
    if given is not None and _VALID_ID.fullmatch(given):
        return given.decode("ascii")
    return f"{_process_prefix}-{next(_request_numbers)}"


def scope_context(scope: Mapping[str, Any]) -> RequestContext:
    context: RequestContext = scope["state"][CONTEXT_KEY]
    return context


def bind_context(scope: Mapping[str, Any]) -> RequestContext:
    """Make the context of an ASGI scope the current one, and return it."""
    context = scope_context(scope)
    current_request.set(context)
    return context


@contextmanager
def in_context(context: RequestContext | None) -> Iterator[None]:
    """Bind log records in this block to the request.

    With `None`, the block leaves the current request: it starts tasks that may outlive it.
    """
    token = current_request.set(context)
    try:
        yield
    finally:
        current_request.reset(token)
