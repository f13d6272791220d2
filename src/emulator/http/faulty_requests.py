"""What faults do to responses and connections: a cut response, or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from litestar.types import Receive

from emulator.core.faults import FaultHit
from emulator.core.wire.transports import reset_connection
from emulator.http.long_requests import wait_for_leaving
from emulator.http.request import Request
from emulator.http.response import Reply, close_chunks, in_one_chunk

CYCLE_KEY = "emulator.cycle"
"""The key of a weak reference to the server's request-response cycle in an ASGI scope's state."""
NO_RESPONSE_STATUS = 444
"""The status in the access log of a request without a response, as web servers write it."""


async def stall(hit: FaultHit, receive: Receive) -> None:
    """Send nothing; return when the client leaves or the fault is removed."""
    pause = hit.pause()
    leaving = asyncio.ensure_future(wait_for_leaving(receive))
    leaving.add_done_callback(lambda _: pause.release())
    try:
        await pause.wait()
    finally:
        leaving.cancel()


def hang_up(request: Request, *, resets: bool = False) -> None:
    """Close the connection, and drop the rest of the response."""
    scope: Any = request.scope
    if CYCLE_KEY not in scope["state"]:
        return  # the caller is in this process
    cycle: Any = scope["state"][CYCLE_KEY]()
    cycle.disconnected = True  # the server flags only the last of pipelined requests
    cycle.message_event.set()
    reset_connection(cycle.transport) if resets else cycle.transport.close()


def truncate_reply(reply: Reply, size: int, request: Request) -> Reply:
    """Return a reply with unchanged headers and only the first bytes of its body, after which the connection closes."""
    if isinstance(reply.body, bytes):
        reply.more = (*reply.more, (b"content-length", str(len(reply.body)).encode()))
    reply.body = _cut_body(reply.body, size, request)
    return reply


async def _cut_body(body: bytes | AsyncIterator[bytes], size: int, request: Request) -> AsyncIterator[bytes]:
    chunks = in_one_chunk(body) if isinstance(body, bytes) else body
    try:
        async for chunk in chunks:
            yield chunk[:size]
            size -= len(chunk)
            if size <= 0:
                break
    finally:
        await close_chunks(chunks)
    hang_up(request)
