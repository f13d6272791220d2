"""Requests that the service makes to itself, as another caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from emulator.http.dispatch import Dispatcher
from emulator.http.refusals import no_path
from emulator.http.request import Request
from emulator.http.response import JSON, close_chunks
from emulator.observability.request_context import bound_to, inner_context
from emulator.parity.rules import UNJUDGED
from emulator.wire.url import normalize_path

_OWN_HEADERS: Final = b"extcli-"
"""The start of the names of the headers that endpoints declare."""


class InnerReply(NamedTuple):
    """The response to such a request."""

    request_id: str
    status: int
    body: bytes
    is_json: bool
    headers: Mapping[str, str]
    """The headers that the endpoint declares, by name."""
    hint: str
    """What the caller probably meant; empty if nothing is known."""


async def answer_inside(
    find_dispatcher: Callable[[], Dispatcher],
    method: str,
    path: str,
    query: bytes,
    authorization: str,
    body: bytes,
    *,
    peer: str,
    max_size: int,
) -> InnerReply:
    """Handle a request under the id of the current one; every error of the endpoint becomes a response.

    Of a longer body, the first bytes are returned, over `max_size`. Raises `NotFound` if there is no such endpoint.
    """
    dispatcher, path = find_dispatcher(), normalize_path(path)
    if not dispatcher.serves(method, path):
        raise no_path(path=f"{method[:10]} {path[:100]}")
    context = inner_context(UNJUDGED)
    request = Request(context, {b"authorization": authorization.encode()}, query, peer, body, len(body))
    with bound_to(context):
        reply = await dispatcher.answer(dispatcher.bound(method, path), request)
        if isinstance(reply.body, bytes):
            answer = reply.body
        else:
            chunks, parts, size = reply.body, [], 0
            async for chunk in chunks:
                parts.append(chunk)
                size += len(chunk)
                if size > max_size:
                    break
            await close_chunks(chunks)
            answer = b"".join(parts)
    headers = {name.decode(): value.decode() for name, value in reply.more if name.lower().startswith(_OWN_HEADERS)}
    return InnerReply(context.id, reply.status, answer, reply.content_type == JSON, headers, context.hint)
