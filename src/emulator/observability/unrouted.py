"""Journal entries of responses from no endpoint: unknown paths, malformed HTTP, handshakes of sockets."""

from __future__ import annotations

from typing import Final

from emulator.errors import Refused, ServiceError
from emulator.faults import fault_id
from emulator.journal import HIDDEN, REQUEST, Entry
from emulator.observability.masking import (
    masked,
    masked_path,
    masked_refusal,
    masked_target,
    masked_text,
    without_path,
)

_METHODS: Final = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE", "WEBSOCKET"}
)
_SHOWN: Final = frozenset({"protocol", "version", "client", "flash"})
"""The parameters that clients of the Pusher protocol send."""


def unrouted_entry(
    path: str,
    *,
    id: str,
    method: str,
    query: bytes = b"",
    status: int,
    seconds: float = 0.0,
    answer: bytes = b"",
    error: ServiceError | None = None,
    socket: int = 0,
    fault: str = "",
) -> Entry:
    """Return an entry without the parts of path and query that may be secret. `method` is empty if unknown.

    `fault` is the header that names the faults which acted.
    """
    plain = masked_path(path)
    method = method if method in _METHODS else HIDDEN if method else ""
    entry = Entry(REQUEST, 0, 0, masked_text(id), None, f"{method} {plain}".strip())
    entry.path = masked_target(plain, query, _SHOWN) if query else plain
    entry.status, entry.seconds, entry.socket = status, seconds, socket
    entry.response_size = len(answer)
    entry.response = masked(answer)
    entry.fault = fault_id(fault)
    if error is not None:
        entry.reason, entry.detail, entry.refused = error.reason, error.detail, masked_refusal(error.refused)
    if plain != path:  # the response may quote it
        entry.detail = without_path(entry.detail, path)
        entry.refused = entry.refused and Refused(*(without_path(each, path) for each in entry.refused))
        entry.response = masked(without_path(answer.decode(errors="replace"), path).encode())
    return entry
