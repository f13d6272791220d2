"""Journal entries of responses to HTTP requests."""

from __future__ import annotations

from typing import Any, Final

from emulator.core.errors import ServiceError
from emulator.core.journal import HIDDEN, REQUEST, Entry
from emulator.core.observability.entries import entry_of, fill
from emulator.core.observability.masking import EVERYTHING, masked_path, masked_target
from emulator.http.endpoint import Endpoint
from emulator.http.request import Request
from emulator.http.response import Reply

_HIDDEN: Final = HIDDEN.encode()
"""The body of a request that is hidden, or that was read in pieces."""


def request_entry(
    endpoint: Endpoint[Any], request: Request, reply: Reply, seconds: float, failure: ServiceError | None
) -> Entry:
    """Return the journal entry of a response to an HTTP request, without secrets."""
    title, path, query = endpoint.title, endpoint.path, request.query
    if request.parts:
        path = masked_path(path.format(**request.parts))
        title = f"{endpoint.method} {path}"
    target = masked_target(path, query, endpoint.shown) if query else path
    entry = entry_of(REQUEST, request.context, title, target, reply.status, seconds)
    answer = reply.content
    fill(entry, request.raw, answer, failure, endpoint.secrets)
    entry.request_size = request.size
    if request.size and EVERYTHING in endpoint.secrets:
        entry.request = _HIDDEN
    return entry
