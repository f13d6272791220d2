"""Applies faults to requests: answers in their place, late answers, cut answers and none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from litestar.types import Receive

from emulator.callers import Caller
from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import EngineError, ServiceError
from emulator.faults import DELAY, REQUEST, RESET, STALL, TRUNCATE, FaultError, Faults, Hit, NoAnswer, Subject
from emulator.web.endpoint import Bound
from emulator.web.held import client_left, close_chunks
from emulator.web.request import AsgiRequest, Request
from emulator.web.response import Reply, error_reply
from emulator.wire.query import query_of

CYCLE: Final = "emulator.cycle"
"""The key of the server's request-response cycle in an ASGI scope's state."""
_NO_RESPONSE: Final = 444
"""The status in the access log of a request without an answer, as web servers write it."""


@dataclass(eq=False, repr=False)
class FaultyRequests:
    """Answers the requests of one service, unless a fault prevents that."""

    _faults: Faults
    _: KW_ONLY
    caller_of: Callable[[str | None], Awaitable[Caller]]
    """Authenticates a header. Raises `ServiceError` and `EngineError`."""
    client_id_of: Callable[[str | None], str]
    """Returns the client id of a header without a token; empty for any other."""
    answer: Callable[[Bound, Request], Awaitable[Reply]]
    refused: Callable[[Bound, Request, Reply, float, ServiceError], None]
    """Counts and records an answer that no endpoint gave."""
    limits: Limits

    async def perform(self, bound: Bound, request: AsgiRequest, receive: Receive) -> Reply:
        """Return the answer to a request. Without one, close the connection; the reply is not sent."""
        started = monotonic()
        hit = self._faults.choose(await self._subject(bound, request))
        if hit is None:
            return await self.answer(bound, request)
        context = request.context
        context.fault = hit.header
        if hit.effect == DELAY and await hit.delayed():
            return await self.answer(bound, request)
        if hit.effect == TRUNCATE:
            return _truncated(await self.answer(bound, request), hit.size, request)
        limit: int = getattr(self.limits, bound.endpoint.limit)
        with suppress(ServiceError):  # to close a connection with unread data would reset it
            await request.body(limit)
        error: FaultError = hit.error()
        context.route, context.production = bound.endpoint.path, ""
        reply = error_reply(error, cors=True) if error.status else Reply(0, b"", cors=False)
        self.refused(bound, request, reply, monotonic() - started, error)
        if isinstance(error, NoAnswer):
            if hit.effect == STALL:
                await _stall(hit, receive)
            _hang_up(request, resets=hit.effect == RESET)
            return Reply(_NO_RESPONSE, b"", cors=False)
        return reply

    async def _subject(self, bound: Bound, request: AsgiRequest) -> Subject:
        """Return what is known of a request. Authenticate it only if a fault has a condition on the caller."""
        endpoint = bound.endpoint
        subject = Subject(REQUEST, endpoint.method, endpoint.path)
        if not self._faults.needs_caller(subject):
            return subject
        given = request.headers.get(b"authorization")
        header = None if given is None else given.decode("latin-1")
        if client_id := self.client_id_of(header):
            return subject._replace(client_id=client_id)
        try:
            caller = await self.caller_of(header)
            channel = caller.channel(query_of(request.query).get("channel_id", ""))
        except (ServiceError, EngineError):
            return subject
        return subject._replace(caller=caller, client_id=caller.client_id, channel=channel)


async def _stall(hit: Hit, receive: Receive) -> None:
    """Return when the client leaves, or the fault ends."""
    pause = hit.pause()
    leaving = asyncio.ensure_future(client_left(receive))
    leaving.add_done_callback(lambda _: pause.release())
    try:
        await pause.wait()
    finally:
        leaving.cancel()


def _hang_up(request: AsgiRequest, *, resets: bool = False) -> None:
    """Close the connection, and drop what else is sent in answer to the request."""
    cycle: Any = request.scope["state"][CYCLE]
    cycle.disconnected = True  # the server marks only the last of pipelined requests
    cycle.message_event.set()
    cycle.transport.reset() if resets else cycle.transport.close()


def _truncated(reply: Reply, size: int, request: AsgiRequest) -> Reply:
    """Return a reply with the head of the whole, and the first bytes of its body; then the connection closes."""
    body, more = reply.body, reply.more
    if isinstance(body, bytes):
        more = (*more, (b"content-length", str(len(body)).encode()))
    return Reply(reply.status, _beginning(body, size, request), reply.cors, reply.content_type, more)


async def _beginning(body: bytes | AsyncIterator[bytes], size: int, request: AsgiRequest) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        yield body[:size]
    else:
        left = size
        try:
            async for chunk in body:
                yield chunk[:left]
                left -= len(chunk)
                if left <= 0:
                    break
        finally:
            await close_chunks(body)
    _hang_up(request)
