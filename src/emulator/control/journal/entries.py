"""A journal entry in the form that readers get. No I/O."""

from __future__ import annotations

import base64
from codecs import getincrementaldecoder

from msgspec import Struct

from emulator.control.explanations import Explanation
from emulator.core.journal import HIDDEN, MAX_BODY, Entry


class JournalCaller(Struct):
    """The caller of an entry, as the token names them."""

    client_id: str
    role: str
    channel_id: str | None
    user_id: str | None
    opaque_id: str


class RecordedBody(Struct):
    """The recorded beginning of a request or response body."""

    text: str
    """Tokens, PINs, codes and secrets are replaced by `[hidden]`."""
    encoding: str
    """`text`, or `base64` if the body is not UTF-8."""
    size: int
    """Bytes of the whole body."""
    is_cut: bool
    """Whether the body is longer than `text`."""
    is_hidden: bool
    """Whether a part is replaced by `[hidden]`."""


class JournalEntry(Struct):
    """One response to a request, reply to a socket frame, or delivery to subscribers."""

    number: int
    """Its mark: later entries have higher numbers."""
    kind: str
    """`request`, `frame` or `delivery`."""
    at: int
    """Unix ms by the service's clock."""
    system_at: int
    """Unix ms by the system's clock."""
    id: str
    """The request id. A frame has its handshake's id and a number, a delivery the id of the request that caused it."""
    namespace: str
    caller: JournalCaller | None
    """The caller, `null` if there is no token."""
    endpoint: str
    """The method and path of the endpoint, the action of a frame, or the topic of a delivery."""
    path: str
    """The path and query that were sent; of a delivery, the client id and channel of the topic, joined by a slash."""
    status: int
    """The status of the response; of a `close`, its code; 0 for a delivery, and if a fault prevented the response."""
    duration_ms: float
    request: RecordedBody
    """What was sent to the service."""
    response: RecordedBody
    """What the service sent."""
    reason: str
    """The reason of a refusal, as in its body."""
    detail: str
    """Its explanation, as in its body."""
    code: str
    """The code of the refusal, as in `X-Emulator-Code`; empty if it has none."""
    rule: str
    """The ruling or section of the specification that it follows from; empty if the entry is not a refusal."""
    next_step: str
    """What to do about it."""
    production: str
    """What production would have done differently, as in `X-Emulator-Production`; empty if nothing."""
    fault: str
    """The id of the fault that acted on it; empty if none did."""
    hint: str
    """What the caller probably meant, as in `X-Emulator-Hint`; empty if nothing is known."""
    recipients: list[str]
    """The first recipients of a delivery."""
    delivered: int
    """Sockets to which it was written."""
    dropped: int
    """Sockets that were closed or had too much unread."""
    socket: int
    """The number of the socket of a frame or of a handshake; 0 for all others."""


def shown(entry: Entry, namespace: str, explanation: Explanation | None) -> JournalEntry:
    """Return an entry with the explanation of its refusal; `None` if it is not a refusal."""
    caller = entry.caller
    return JournalEntry(
        number=entry.number,
        kind=entry.kind,
        at=entry.at,
        system_at=entry.at - entry.offset,
        id=entry.id,
        namespace=namespace,
        caller=JournalCaller(caller.client_id, str(caller.role), caller.channel_id, caller.user_id, caller.opaque_id)
        if caller
        else None,
        endpoint=entry.name,
        path=entry.path,
        status=entry.status,
        duration_ms=round(entry.seconds * 1_000, 3),
        request=_content(entry.request, entry.request_size),
        response=_content(entry.response, entry.response_size),
        reason=entry.reason,
        detail=entry.detail,
        code=entry.refused.code if entry.refused else "",
        rule="" if explanation is None else explanation.rule,
        next_step="" if explanation is None else explanation.next_step,
        production=entry.production,
        fault=entry.fault,
        hint=entry.hint,
        recipients=entry.recipients.split("\n") if entry.recipients else [],
        delivered=entry.delivered,
        dropped=entry.dropped,
        socket=entry.socket,
    )


def is_cut(body: bytes, size: int) -> bool:
    """Whether the journal has only the beginning of a body of `size` bytes.

    A body in which a secret was hidden counts as complete.
    """
    return size > len(body) and (len(body) >= MAX_BODY or not body)


def _content(body: bytes, size: int) -> RecordedBody:
    """Return a body as text if it is UTF-8, apart from a character that its end cuts; else as base64."""
    cut = is_cut(body, size)
    try:
        text, encoding = getincrementaldecoder("utf-8")().decode(body, final=not cut), "text"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(body).decode(), "base64"
    return RecordedBody(text, encoding, size, cut, HIDDEN.encode() in body)
