"""Journal entries of responses to HTTP requests."""

from __future__ import annotations

from typing import Any, Final

from emulator.core.errors import ServiceError
from emulator.core.journal import HIDDEN, MAX_BODY, REQUEST, Entry, Journal
from emulator.core.observability.entries import unrouted_entry, with_outcome
from emulator.core.observability.masking import (
    EVERYTHING,
    masked,
    masked_caller,
    masked_path,
    masked_target,
    masked_text,
)
from emulator.core.observability.request_context import PRODUCTION, RequestContext
from emulator.http.endpoint import Endpoint
from emulator.http.request import Request
from emulator.http.response import Reply

_OWN_ID: Final = 20
"""Characters that an id may have which the service made itself."""


_HIDDEN: Final = HIDDEN.encode()
"""The body of a request that is hidden, or that was read in pieces."""


def request_entry(
    endpoint: Endpoint[Any], request: Request, reply: Reply, seconds: float, failure: ServiceError | None
) -> Entry:
    """Return the journal entry of a response to an HTTP request, without secrets."""
    context, secrets, query = request.context, endpoint.secrets, request.query
    answer = reply.body if isinstance(reply.body, bytes) else b""
    id, title, path = context.id, endpoint.title, endpoint.path
    if request.parts:
        path = masked_path(endpoint.path.format(**request.parts))
        title = f"{endpoint.method} {path}"
    entry = Entry(
        REQUEST,
        0,
        0,
        masked_text(id) if len(id) > _OWN_ID else id,
        masked_caller(context.caller),
        title,
        masked_target(path, query, endpoint.shown) if query else path,
        reply.status,
        seconds,
        _HIDDEN if request.size and EVERYTHING in secrets else masked(request.raw, secrets),
        request.size,
        masked(answer, secrets) if failure or endpoint.answers_with_texts else answer[:MAX_BODY],
        len(answer),
    )
    return with_outcome(entry, context, failure)


_OF_BROWSERS: Final = ("/favicon.ico", "/apple-touch-icon", "/robots.txt", "/.well-known/")
"""What browsers request by themselves: its refusal would hide one that matters."""


def record_unrouted(
    journal: Journal, context: RequestContext, method: str, path: str, reply: Reply, error: ServiceError | None = None
) -> None:
    """Record a response that came from no endpoint in a journal, if the journal is enabled."""
    if journal.is_on and not path.startswith(_OF_BROWSERS):
        answer = reply.body if isinstance(reply.body, bytes) else b""
        entry = unrouted_entry(path, id=context.id, method=method, status=reply.status, answer=answer, error=error)
        with_outcome(entry, context, None)
        entry.production = context.production or dict(reply.more).get(PRODUCTION, b"").decode()
        journal.add(entry)
