"""Journal entries of requests that reached no endpoint, of socket frames and of deliveries."""

from __future__ import annotations

from http import HTTPMethod
from typing import NamedTuple

from emulator.core.callers import Caller
from emulator.core.errors import Refused, ServiceError
from emulator.core.journal import CLOSE, DELIVERY, FRAME, HIDDEN, REQUEST, Entry
from emulator.core.keys import Key
from emulator.core.observability.masking import (
    masked_body,
    masked_caller,
    masked_parts,
    masked_path,
    masked_target,
    masked_text,
)
from emulator.core.observability.request_context import RequestContext, current

_MAX_OWN_ID = 20
"""Characters that an id may have which the service made itself."""
_MAX_NAME_LENGTH = 100
_METHODS = frozenset({*HTTPMethod, "QUERY"})
_SHOWN_PARAMETERS = frozenset({"protocol", "version", "client", "flash"})
"""The parameters that clients of the Pusher protocol send."""


def basic_entry(kind: str, context: RequestContext, name: str, path: str, status: int, seconds: float = 0.0) -> Entry:
    """Return an entry of a request without bodies. Its `name` and `path` must have no secrets."""
    id = context.id if len(context.id) <= _MAX_OWN_ID else masked_text(context.id)
    entry = Entry(kind, 0, 0, id, masked_caller(context.caller), name, path, status, seconds)
    entry.socket, entry.fault = context.socket, context.fault.partition(";")[0]
    entry.production, entry.hint = context.production, masked_text(context.hint)
    return entry


def add_bodies(
    entry: Entry, sent: bytes, answer: bytes, error: ServiceError | None, secrets: frozenset[str] = frozenset()
) -> Entry:
    """Add the bodies of a request and its response, without the members named `secrets`, and the error; return it."""
    entry.request, entry.request_size = masked_body(sent, secrets), len(sent)
    entry.response, entry.response_size = masked_body(answer, secrets), len(answer)
    if error is not None:
        entry.reason, entry.detail = error.reason, masked_text(error.detail)
        entry.refused = error.refused and Refused(*map(masked_text, error.refused))
    return entry


class Unrouted(NamedTuple):
    """A request that no endpoint answered, and its response."""

    context: RequestContext
    method: str
    """Empty if unknown."""
    path: str
    """Below its namespace."""
    status: int
    answer: bytes
    error: ServiceError | None = None
    query: bytes = b""
    seconds: float = 0.0


def unrouted_entry(request: Unrouted) -> Entry:
    """Return an entry without the parts of path and query that may be secret."""
    context, method, path, status, answer, error, query, seconds = request
    plain = masked_path(path)
    if method and method not in _METHODS:
        method = HIDDEN
    name = f"{method} {plain}".strip()
    target = masked_target(plain, query, _SHOWN_PARAMETERS) if query else plain
    entry = add_bodies(basic_entry(REQUEST, context, name, target, status, seconds), b"", answer, error)
    if plain != path:  # the response may quote it
        entry.detail = masked_parts(entry.detail, path)
        entry.refused = entry.refused and Refused(*(masked_parts(each, path) for each in entry.refused))
        entry.response = masked_body(masked_parts(answer.decode(errors="replace"), path).encode())
    return entry


def frame_entry(
    context: RequestContext,
    name: str,
    request: bytes,
    answer: bytes,
    error: ServiceError | None,
    secrets: frozenset[str],
    seconds: float = 0.0,
) -> Entry:
    """Return the entry of a frame and its reply, without secrets."""
    status = error.status if error else 200
    entry = basic_entry(FRAME, context, masked_text(name[:_MAX_NAME_LENGTH]), "", status, seconds)
    return add_bodies(entry, request, answer, error, secrets)


def close_entry(socket: int, id: str, caller: Caller | None, error: ServiceError) -> Entry:
    """Return the entry of a connection that the service closed because of an error or a limit."""
    context = RequestContext(f"{id}/close", caller=caller, socket=socket, fault=current().fault)
    entry = add_bodies(basic_entry(FRAME, context, CLOSE, "", error.close_code), b"", b"", error)
    entry.reason = ""
    return entry


def delivery_entry(topic: Key, message: bytes) -> Entry:
    """Return the entry of a message to the subscribers of a topic, without recipients."""
    cause = current()
    context = RequestContext(cause.id, caller=cause.caller, fault=cause.delivery_fault)
    name = masked_text(f"{topic.kind}:{topic.name}") if topic.name else topic.kind
    target = masked_text(f"{topic.owner}/{topic.channel or ''}")
    return add_bodies(basic_entry(DELIVERY, context, name, target, 0), b"", message, None)
