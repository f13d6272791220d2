"""From a request to a reply: credential, role, size, body, endpoint; every endpoint passes here, whatever the way."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from litestar.types import HTTPScope, Receive

from emulator.callers import Caller
from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import BadRequest, EngineError, Forbidden, ServiceError, TooLarge, Unauthorized, Unavailable
from emulator.limits.rate_limit import RateLimits
from emulator.observability.recorder import Recorder
from emulator.observability.request_context import RequestContext, current
from emulator.web.call import Call
from emulator.web.endpoint import Audience, Bound, Streamed, Text
from emulator.web.response import Reply, error_reply
from emulator.wire import json_codec
from emulator.wire.query import query_of

_log = logging.getLogger("emulator")

DISPATCHER = "emulator.dispatcher"
"""The key under which a scope's state carries the dispatcher of the running service."""

Gate = Callable[[HTTPScope], None]
"""Raises if a request may not reach the control API."""


class Dispatcher:
    """The endpoints of one running service, behind their checks."""

    def __init__(
        self,
        endpoints: Iterable[Bound],
        *,
        cached_caller: Callable[[str | None], Caller | None],
        caller: Callable[[str | None], Awaitable[Caller]],
        check_registered: Callable[[str], None],
        control_gate: Gate,
        limits: Limits,
        rate_limits: RateLimits,
        recorder: Recorder,
    ) -> None:
        self._bound = {(bound.endpoint.method, bound.endpoint.path): bound for bound in endpoints}
        self._known_caller = cached_caller
        self._caller = caller
        self._check_registered = check_registered
        self._control_gate = control_gate
        self._limits = limits
        self._rate_limits = rate_limits
        self._recorder = recorder

    def serves(self, method: str, path: str) -> bool:
        """Whether this service has the endpoint; production has no control API and no `authtoken`."""
        return (method, path) in self._bound

    def knows(self, path: str) -> bool:
        """Whether this service has an endpoint of any method at a path."""
        return any(path == known for _, known in self._bound)

    async def perform(self, method: str, path: str, scope: HTTPScope, receive: Receive) -> Reply:
        """Answer one request to an endpoint that this service has."""
        began = monotonic()
        bound = self._bound[method, path]
        context = current.get() or RequestContext("")
        context.route = path
        cors = bound.endpoint.audience in (Audience.CLIENTS, Audience.CLIENT_ID, Audience.PUBLIC)
        try:
            reply = _reply(await self._answer(bound, context, scope, receive), cors)
        except ServiceError as error:
            self._recorder.refused(error)
            reply = error_reply(error, cors=cors)
        except RecursionError:
            reply = error_reply(BadRequest("Invalid body", "the body is nested too deeply"), cors=cors)
        except EngineError as error:
            self._recorder.storage(answers=False)
            _log.error("storage failed in %s %s: %s", method, path, error)
            reply = error_reply(Unavailable(), cors=cors)
        except Exception:
            _log.exception("unexpected failure in %s %s", method, path)
            reply = error_reply(ServiceError("Internal Service Error"), cors=cors)
        self._recorder.answered(method, path, reply.status, monotonic() - began)
        return reply

    async def _answer(self, bound: Bound, context: RequestContext, scope: HTTPScope, receive: Receive) -> object:
        endpoint = bound.endpoint
        headers = dict(scope["headers"])
        client: Any = scope.get("client")
        peer = client[0] if client else ""
        caller, client_id = None, ""
        if endpoint.audience is Audience.CLIENTS:
            header = _text(headers.get(b"authorization"))
            context.caller = caller = self._known_caller(header) or await self._proven(header, peer)
            self._rate_limits.check(caller)
            if caller.role not in endpoint.roles:
                needed = " or ".join(sorted(endpoint.roles))
                raise Forbidden("role is not authorized", f"the role {caller.role} may not do this: {needed} may")
        elif endpoint.audience is Audience.CLIENT_ID:
            header = _text(headers.get(b"authorization"))
            client_id = named_client(header)
            if client_id:
                with self._counting_failures(peer):
                    self._check_registered(client_id)
            elif header:
                context.caller = caller = self._known_caller(header) or await self._proven(header, peer)
                client_id = caller.client_id
            self._rate_limits.check(caller) if caller else self._rate_limits.check_address(client_id, peer)
        elif endpoint.audience is Audience.PUBLIC:
            self._rate_limits.check_address("", peer)
        elif endpoint.audience is Audience.CONTROL:
            self._control_gate(scope)
        chunks = chunks_of(headers, receive, getattr(self._limits, endpoint.limit))
        body = b"" if endpoint.streamed else await read_body(headers, receive, getattr(self._limits, endpoint.limit))
        call = Call(caller, query_of(scope["query_string"]), body, peer, client_id, self._check_registered, chunks)
        answer = await bound.answer(call)
        return await _begun(answer.chunks) if isinstance(answer, Streamed) else answer

    async def _proven(self, header: str | None, peer: str) -> Caller:
        """Who has a credential that is not known yet. Of an address that failed too often none is looked at."""
        self._rate_limits.check_failures(peer)
        with self._counting_failures(peer):
            return await self._caller(header)

    @contextmanager
    def _counting_failures(self, peer: str) -> Iterator[None]:
        """Count what is refused in the block against the address that it came from."""
        try:
            yield
        except (Unauthorized, Forbidden):
            self._rate_limits.check_failures(peer, one_more=True)
            raise


async def _begun(chunks: AsyncIterator[bytes]) -> Streamed:
    """The same with its first chunk made: what fails from the start can still be said, later only be broken off."""
    first = await anext(chunks, b"")

    async def resumed() -> AsyncIterator[bytes]:
        yield first
        async for chunk in chunks:
            yield chunk

    return Streamed(resumed())


def _reply(answer: object, cors: bool) -> Reply:
    if isinstance(answer, Streamed):
        return Reply(200, answer.chunks, cors)
    if isinstance(answer, Text):
        return Reply(200, answer.body, cors, answer.content_type.encode())
    return Reply(200, json_codec.encode(answer), cors)


def named_client(header: str | None) -> str:
    """The client id of a header that holds nothing else; empty for any other."""
    words = (header or "").strip().strip('"').split()
    return words[0] if len(words) == 1 else ""


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")


async def read_body(headers: dict[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The whole body, chunked or not; raises `TooLarge` as soon as it is known to pass `limit` bytes (ruling W8)."""
    _check_announced(headers, limit)
    message: Any = await receive()
    if not message.get("more_body", True) and len(message["body"]) <= limit:  # as nearly all are
        body: bytes = message["body"]
        return body
    return b"".join([piece async for piece in _pieces(message, receive, limit)])


async def chunks_of(headers: dict[bytes, bytes], receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """The body piece by piece, as it comes, with the same limit."""
    _check_announced(headers, limit)
    async for piece in _pieces(await receive(), receive, limit):
        yield piece


def _check_announced(headers: dict[bytes, bytes], limit: int) -> None:
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > limit:
        raise TooLarge("Body too large", f"the body has {int(announced)} bytes, and at most {limit} are taken")


async def _pieces(message: Any, receive: Receive, limit: int) -> AsyncIterator[bytes]:
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            context = current.get()
            cut = context.cut if context else None
            raise cut or BadRequest("Malformed json body", "the connection ended before the body did")
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise TooLarge("Body too large", f"the body has over {limit} bytes, and at most {limit} are taken")
        yield piece
        if not message.get("more_body", False):
            return
        message = await receive()
