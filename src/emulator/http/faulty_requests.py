"""Applies faults to requests: another response, a late one, a cut one or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from litestar.types import Receive

from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import EngineError, ServiceError
from emulator.faults import DELAY, REQUEST, RESET, STALL, TRUNCATE, FaultError, Faults, Hit, NoResponse, Subject
from emulator.http.access import Access, authorization_of, bare_client_id
from emulator.http.endpoint import Bound, Endpoint
from emulator.http.long_requests import client_left
from emulator.http.request import Request
from emulator.http.response import Reply, close_chunks, error_reply
from emulator.wire.url import query_of

CYCLE: Final = "emulator.cycle"
"""The key of a weak reference to the server's request-response cycle in an ASGI scope's state."""
_NO_RESPONSE: Final = 444
"""The status in the access log of a request without a response, as web servers write it."""


@dataclass(eq=False, repr=False)
class FaultyRequests:
    """Handles the requests of one service, unless a fault prevents that."""

    _faults: Faults
    _access: Access
    _answer: Callable[[Bound, Request], Awaitable[Reply]]
    _refused: Callable[[Endpoint[Any], Request, Reply, float, ServiceError], None]
    """Counts and records a response that no endpoint gave."""
    _limits: Limits

    async def perform(self, bound: Bound, request: Request, receive: Receive) -> Reply:
        """Send the response to a request. If a fault suppresses the response, close the connection."""
        started = monotonic()
        hit = self._faults.choose(await self._subject(bound, request))
        if hit is None:
            return await self._answer(bound, request)
        context = request.context
        context.fault = hit.header
        if hit.effect == DELAY and await hit.delayed():
            return await self._answer(bound, request)
        if hit.effect == TRUNCATE:
            return _truncated(await self._answer(bound, request), hit.size, request)
        limit: int = getattr(self._limits, bound.endpoint.limit)
        with suppress(ServiceError):  # to close a connection with unread data would reset it
            await request.body(limit)
        error: FaultError = hit.error()
        context.route, context.production = bound.endpoint.path, ""
        reply = error_reply(error, cors=True, shows_code=True) if error.status else Reply(0, b"", cors=False)
        self._refused(bound.endpoint, request, reply, monotonic() - started, error)
        if isinstance(error, NoResponse):
            if hit.effect == STALL:
                await _stall(hit, receive)
            _hang_up(request, resets=hit.effect == RESET)
            return Reply(_NO_RESPONSE, b"", cors=False)
        return reply

    async def _subject(self, bound: Bound, request: Request) -> Subject:
        """Return the facts that faults match. Authenticates only if a fault has a condition on the caller."""
        endpoint = bound.endpoint
        subject = Subject(REQUEST, endpoint.method, endpoint.path)
        if not self._faults.needs_caller(subject):
            return subject
        header = authorization_of(request.headers)
        if client_id := bare_client_id(header):
            return subject._replace(client_id=client_id)
        try:
            caller = await self._access.caller_without_counting(header)
            channel = caller.channel(query_of(request.query).get("channel_id", ""))
        except (ServiceError, EngineError):
            return subject
        return subject._replace(caller=caller, client_id=caller.client_id, channel=channel)


async def _stall(hit: Hit, receive: Receive) -> None:
    """Send nothing; return when the client leaves or the fault is removed."""
    pause = hit.pause()
    leaving = asyncio.ensure_future(client_left(receive))
    leaving.add_done_callback(lambda _: pause.release())
    try:
        await pause.wait()
    finally:
        leaving.cancel()


def _hang_up(request: Request, *, resets: bool = False) -> None:
    """Close the connection, and drop the rest of the response."""
    scope: Any = request.scope
    cycle: Any = scope["state"][CYCLE]()
    cycle.disconnected = True  # the server flags only the last of pipelined requests
    cycle.message_event.set()
    cycle.transport.reset() if resets else cycle.transport.close()


def _truncated(reply: Reply, size: int, request: Request) -> Reply:
    """Return a reply with unchanged headers and only the first bytes of its body, after which the connection closes."""
    body, more = reply.body, reply.more
    if isinstance(body, bytes):
        more = (*more, (b"content-length", str(len(body)).encode()))
    return Reply(reply.status, _beginning(body, size, request), reply.cors, reply.content_type, more)


async def _beginning(body: bytes | AsyncIterator[bytes], size: int, request: Request) -> AsyncIterator[bytes]:
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
