"""Journal entries of requests that reached no endpoint, of socket frames and of deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from emulator.core.callers import Caller
from emulator.core.errors import Refused, ServiceError
from emulator.core.faults import fault_id
from emulator.core.journal import CLOSE, DELIVERY, FRAME, HIDDEN, REQUEST, Entry
from emulator.core.keys import Key
from emulator.core.observability.masking import (
    masked,
    masked_caller,
    masked_path,
    masked_target,
    masked_text,
    without_path,
)
from emulator.core.observability.request_context import RequestContext, current_request

MAX_NAMED: Final = 10
"""Recipients that a delivery names."""
_LONGEST_NAME: Final = 100
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
    _add_error(entry, error)
    if plain != path:  # the response may quote it
        entry.detail = without_path(entry.detail, path)
        entry.refused = entry.refused and Refused(*(without_path(each, path) for each in entry.refused))
        entry.response = masked(without_path(answer.decode(errors="replace"), path).encode())
    return entry


class Recipient(Protocol):
    """A receiver of frames, as the journal names it in a delivery."""

    @property
    def label(self) -> str:
        """The socket's number and caller, for the log: `socket 12 (game, broadcaster 777)`."""

    @property
    def is_reachable(self) -> bool:
        """Whether the socket is open and its unread bytes are within the limit."""


def frame_entry(
    socket: int,
    context: RequestContext,
    caller: Caller | None,
    name: str,
    request: bytes,
    answer: bytes,
    seconds: float = 0.0,
    *,
    error: ServiceError | None = None,
    secrets: frozenset[str] = frozenset(),
) -> Entry:
    """Return the entry of a frame and its reply, without secrets."""
    entry = Entry(FRAME, 0, 0, masked_text(context.id), masked_caller(caller), masked_text(name[:_LONGEST_NAME]))
    entry.status, entry.seconds, entry.socket = error.status if error else 200, seconds, socket
    entry.request, entry.request_size = masked(request, secrets), len(request)
    entry.response, entry.response_size = masked(answer, secrets), len(answer)
    return with_outcome(entry, context, error)


def close_entry(socket: int, id: str, caller: Caller | None, error: ServiceError) -> Entry:
    """Return the entry of a connection that the service closed because of an error or a limit."""
    entry = Entry(FRAME, 0, 0, f"{masked_text(id)}/close", masked_caller(caller), CLOSE)
    _add_error(entry, error)
    entry.status, entry.reason, entry.socket = error.close_code, "", socket
    context = current_request.get()
    entry.fault = "" if context is None else fault_id(context.fault)
    return entry


def with_outcome(entry: Entry, context: RequestContext, error: ServiceError | None) -> Entry:
    """Add an error, production's verdict, the fault that acted and the hint to an entry, and return it."""
    _add_error(entry, error)
    entry.production, entry.fault, entry.hint = context.production, fault_id(context.fault), masked_text(context.hint)
    return entry


def _add_error(entry: Entry, error: ServiceError | None) -> None:
    if error is not None:
        entry.reason, entry.detail = error.reason, masked_text(error.detail)
        entry.refused = error.refused and Refused(*map(masked_text, error.refused))


def delivery_entry(topic: Key, message: bytes) -> Entry:
    """Return the entry of a message to the subscribers of a topic, without recipients."""
    context = current_request.get()
    entry = Entry(DELIVERY, 0, 0, "" if context is None else masked_text(context.id))
    entry.caller = None if context is None else masked_caller(context.caller)
    entry.name = masked_text(f"{topic.kind}:{topic.name}") if topic.name else topic.kind
    entry.path = masked_text(f"{topic.owner}/{topic.channel or ''}")
    entry.response, entry.response_size = masked(message), len(message)
    entry.fault = "" if context is None else context.delivery_fault
    return entry


def add_recipients(entries: Iterable[Entry], recipients: Sequence[Recipient]) -> None:
    """Add recipients to the entries of messages that were written to them."""
    reached = [each.is_reachable for each in recipients]
    delivered = sum(reached)
    for entry in entries:
        entry.delivered += delivered
        entry.dropped += len(reached) - delivered
        left = MAX_NAMED - (entry.recipients.count("\n") + 1 if entry.recipients else 0)
        if left > 0:
            named = zip(recipients[:left], reached[:left], strict=True)
            texts = [each.label if is_reached else f"{each.label}, dropped" for each, is_reached in named]
            entry.recipients = masked_text("\n".join([entry.recipients, *texts] if entry.recipients else texts))
