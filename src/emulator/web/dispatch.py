"""Dispatch of every HTTP call: check the credential, role, rate and body size, then run the endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any, Final

from litestar.types import HTTPScope, Receive

from emulator.callers import Caller, Identify, finish_recording, role_error
from emulator.changes import Changes
from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import BadRequest, EngineError, Forbidden, ServiceError, Unauthorized, Unavailable
from emulator.faults import REQUEST as REQUESTS
from emulator.faults import Faults, fault_id
from emulator.journal import MAX_BODY, REQUEST, Entry, Journal
from emulator.limits.rate_limit import RateLimits
from emulator.observability.masking import masked, masked_caller, masked_target, masked_text
from emulator.observability.recorder import Recorder
from emulator.observability.request_context import PRODUCTION, RequestContext, current
from emulator.observability.unrouted import unrouted_entry
from emulator.parity.rules import ENDPOINT
from emulator.parity.service import Parity, note
from emulator.web.call import Call
from emulator.web.endpoint import Audience, Bound, Endpoint, Page, Special, Streamed, Text, WithHeaders
from emulator.web.faulty_requests import FaultyRequests
from emulator.web.forms import json_of
from emulator.web.held import HeldRequests, close_chunks
from emulator.web.request import AsgiRequest, Request
from emulator.web.response import Reply, error_page, error_reply
from emulator.wire import json_codec
from emulator.wire.query import query_of

_log = logging.getLogger("emulator")

_TOKEN_START: Final = "eyJ"
"""The base64 of `{"`."""
_LONGEST_GUESS: Final = 64
"""Characters of an unknown path for which a similar one is looked for."""
_OWN_ID: Final = 20
"""Characters that an id may have which the service made itself."""
_OWN: Final = (Audience.CONTROL, Audience.PAGE)
DISPATCHER = "emulator.dispatcher"
"""The key of the dispatcher in an ASGI scope's state."""
STREAM: Final = "emulator.stream"
"""The key of the chunks of a reply in an ASGI scope's state."""

Gate = Callable[[HTTPScope], None]
"""Raises a `ServiceError` if a request may not reach the control API."""


@dataclass(eq=False, repr=False)
class Dispatcher:
    """Runs the endpoints of one service after their checks."""

    endpoints: InitVar[Iterable[Bound]]
    _: KW_ONLY
    cached_caller: Callable[[str | None], Caller | None]
    authenticate: Callable[[str | None], Awaitable[Caller]]
    identify: Identify
    check_registered: Callable[[str], None]
    control_gate: Gate
    page_gate: Gate
    limits: Limits
    rate_limits: RateLimits
    recorder: Recorder
    changes: Changes
    parity: Parity
    journal: Journal
    faults: Faults

    def __post_init__(self, endpoints: Iterable[Bound]) -> None:
        self.held = HeldRequests()
        self._faulty = FaultyRequests(
            self.faults,
            caller_of=self._caller_of,
            client_id_of=_bare_client_id,
            answer=self.answer,
            refused=self._refused,
            limits=self.limits,
        )
        self._bound = {(bound.endpoint.method, bound.endpoint.path): bound for bound in endpoints}

    def serves(self, method: str, path: str) -> bool:
        """Whether this service has the endpoint; production lacks the control API and `authtoken`."""
        return (method, path) in self._bound

    def knows(self, path: str) -> bool:
        """Whether this service has an endpoint at `path`, for any method."""
        return any(path == known for _, known in self._bound)

    def nearest(self, path: str) -> str:
        """Return the path of an endpoint that is most like this one; empty if none is, or without a journal."""
        if not self.journal.is_on or len(path) > _LONGEST_GUESS:
            return ""
        from difflib import get_close_matches

        found = get_close_matches(path, {known for _, known in self._bound if "{" not in known}, 1, 0.8)
        return found[0] if found else ""

    @property
    def open_endpoints(self) -> list[tuple[str, str]]:
        """The methods and paths of the endpoints for extensions."""
        return [name for name, bound in self._bound.items() if bound.endpoint.allows_any_origin]

    def bound(self, method: str, path: str) -> Bound:
        """Return one of this service's endpoints."""
        return self._bound[method, path]

    async def perform(self, method: str, path: str, scope: HTTPScope, receive: Receive) -> Reply:
        """Run one of this service's endpoints for an ASGI server; every error becomes a reply.

        A reply in chunks is also `STREAM` in the scope's state. The caller closes it, even if it could not be sent.
        """
        reply = await self._perform(self._bound[method, path], scope, receive)
        if not isinstance(reply.body, bytes):
            scope["state"][STREAM] = reply.body
        return reply

    async def _perform(self, bound: Bound, scope: HTTPScope, receive: Receive) -> Reply:
        request = AsgiRequest(scope, receive, current.get() or RequestContext(""))
        if bound.endpoint.held:
            return await self._held(bound, request, receive)
        if REQUESTS in self.faults.kinds and bound.endpoint.allows_any_origin:
            return await self._faulty.perform(bound, request, receive)
        return await self.answer(bound, request)

    async def _held(self, bound: Bound, request: Request, receive: Receive) -> Reply:
        """Run a held endpoint; every error becomes a reply."""
        started = monotonic()
        try:
            return await self.held.answer(lambda: self.answer(bound, request), receive)
        except ServiceError as error:  # `answer` raises none
            is_page = bound.endpoint.audience is Audience.PAGE
            reply = error_page(error) if is_page else error_reply(error, cors=bound.endpoint.allows_any_origin)
            if self.journal.is_on and bound.endpoint.is_recorded:
                self._record(bound.endpoint, request, reply, monotonic() - started, error)
            return reply

    async def answer(self, bound: Bound, request: Request) -> Reply:
        """Run an endpoint; every error becomes a reply."""
        started = monotonic()
        endpoint, context = bound.endpoint, request.context
        method, path = endpoint.method, endpoint.path
        context.route, context.mark = path, self.changes.mark
        cors = endpoint.allows_any_origin
        failure: ServiceError | None = None
        try:
            reply = _reply(await self._answer(bound, request), cors, endpoint.status)
        except ServiceError as error:
            self.recorder.refused(error)
            failure = error
        except RecursionError:
            failure = BadRequest("Invalid body", "the body is nested too deeply")
        except EngineError as error:
            self.recorder.storage(ok=False)
            _log.error("storage failed in %s %s: %s", method, path, error)
            failure = Unavailable()
        except Exception:
            _log.exception("unexpected failure in %s %s", method, path)
            failure = ServiceError("Internal Service Error")
        if failure is not None:
            reply = error_page(failure) if endpoint.audience is Audience.PAGE else error_reply(failure, cors=cors)
        seconds = monotonic() - started
        self.recorder.answered(method, path, reply.status, seconds)
        if context.production:
            self.parity.settle(context, f"{method} {path}", reply.status, is_counted=endpoint.allows_any_origin)
        if self.journal.is_on and endpoint.is_recorded:
            if failure is not None and isinstance(request, AsgiRequest) and not endpoint.streamed:
                await request.read_arrived()
            self._record(endpoint, request, reply, seconds, failure)
        return reply

    def _record(
        self, endpoint: Endpoint[Any], request: Request, reply: Reply, seconds: float, failure: ServiceError | None
    ) -> None:
        """Add an answer to the journal."""
        context, secrets, query, body = request.context, endpoint.secrets, request.query, request.raw
        answer = reply.body if isinstance(reply.body, bytes) else b""
        id, detail = context.id, failure.detail if failure else ""
        self.journal.add(
            Entry(
                REQUEST,
                0,
                0,
                masked_text(id) if len(id) > _OWN_ID else id,
                masked_caller(context.caller),
                endpoint.title,
                masked_target(endpoint.path, query, endpoint.shown) if query else endpoint.path,
                reply.status,
                seconds,
                masked(body, secrets),
                request.size,
                masked(answer, secrets) if failure or endpoint.answers_with_texts else answer[:MAX_BODY],
                len(answer),
                failure.reason if failure else "",
                masked_text(detail) if detail else "",
                context.production,
                fault=fault_id(context.fault) if context.fault else "",
            )
        )

    def _refused(self, bound: Bound, request: Request, reply: Reply, seconds: float, error: ServiceError) -> None:
        """Count and record an answer that the endpoint did not give; status 0 stands for none."""
        endpoint = bound.endpoint
        if reply.status:
            self.recorder.answered(endpoint.method, endpoint.path, reply.status, seconds)
        if self.journal.is_on and endpoint.is_recorded:
            self._record(endpoint, request, reply, seconds, error)

    async def _caller_of(self, header: str | None) -> Caller:
        return self.cached_caller(header) or await self.authenticate(header)

    def record_unrouted(
        self, context: RequestContext, method: str, path: str, reply: Reply, error: ServiceError | None = None
    ) -> None:
        """Add an answer that no endpoint gave to the journal."""
        if self.journal.is_on:
            answer = reply.body if isinstance(reply.body, bytes) else b""
            entry = unrouted_entry(path, id=context.id, method=method, status=reply.status, answer=answer, error=error)
            entry.production = context.production or dict(reply.more).get(PRODUCTION, b"").decode()
            self.journal.add(entry)

    async def run(self, method: str, path: str, caller: Caller, query: Mapping[str, str], body: bytes) -> object:
        """Run an endpoint for a caller whose token and role need no check. Raises what the endpoint raises."""
        self.check_registered(caller.client_id)
        caller, recording = await self.identify(caller, writes=True)
        call = Call(caller, query, body, "", "", self.check_registered, _in_one_chunk(body))
        answer = await self._bound[method, path].answer(call)
        if recording is not None:
            await finish_recording(recording)
        return answer

    async def _answer(self, bound: Bound, request: Request) -> object:
        endpoint, headers, peer, context = bound.endpoint, request.headers, request.peer, request.context
        caller, client_id = None, ""
        if endpoint.audience is Audience.CLIENTS:
            header = _text(headers.get(b"authorization"))
            context.caller = caller = self.cached_caller(header) or await self._authenticated(header, peer)
            self.rate_limits.check(caller, peer)
            if caller.role not in endpoint.roles:
                raise role_error(caller.role, endpoint.roles)
        elif endpoint.audience is Audience.CLIENT_ID:
            header = _text(headers.get(b"authorization"))
            client_id = _bare_client_id(header)
            if client_id:
                try:
                    self.check_registered(client_id)
                except Unauthorized:
                    self.rate_limits.check_failures(peer, one_more=True)
                    raise
            elif header:
                context.caller = caller = self.cached_caller(header) or await self._authenticated(header, peer)
                client_id = caller.client_id
            self.rate_limits.check(caller, peer) if caller else self.rate_limits.check_address(peer)
        elif endpoint.audience is Audience.PUBLIC:
            self.parity.check_endpoint(endpoint.method, endpoint.path)
            self.rate_limits.check_address(peer)
        elif endpoint.audience is Audience.CONTROL:
            note(ENDPOINT)
            self.control_gate(request.scope)
        elif endpoint.audience is Audience.PAGE:
            note(ENDPOINT)
            self.page_gate(request.scope)
        # The control API and pages have no callers, and their limits are for all.
        is_large = endpoint.audience in _OWN if caller is None else caller.role in endpoint.limit_roles
        limit: int = getattr(self.limits, endpoint.limit) if is_large else self.limits.body
        body = b"" if endpoint.streamed else await request.body(limit)
        if body and endpoint.audience is Audience.CONTROL and endpoint.body is not None:
            body = json_of(body, headers, endpoint.body_shape)
        recording = None
        if caller is not None and caller.user_id is not None:
            caller, recording = await self.identify(caller, writes=endpoint.method != "GET")
        try:
            query, chunks = query_of(request.query), request.chunks(limit)
            if endpoint.audience is Audience.PAGE:
                query = {**query, **request.scope["path_params"]}
            answer = await bound.answer(
                Call(caller, query, body, peer, client_id, self.check_registered, chunks, headers)
            )
            context.mark = self.changes.mark  # before anything else runs, so that what this causes has later marks
        finally:
            if recording is not None:
                await finish_recording(recording)
        if not isinstance(answer, Streamed):
            return answer
        chunks = self.held.stream(answer.chunks) if endpoint.held else answer.chunks
        return Streamed(await _with_first_chunk(chunks), answer.content_type)

    async def _authenticated(self, header: str | None, peer: str) -> Caller:
        """Authenticate a header that is not cached, unless its address has failed too often. Count a 401 or 403."""
        self.rate_limits.check_failures(peer)
        try:
            return await self.authenticate(header)
        except (Unauthorized, Forbidden):
            self.rate_limits.check_failures(peer, one_more=True)
            raise


async def _in_one_chunk(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _with_first_chunk(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Produce the first chunk now, so that an early failure still gets an error reply."""

    async def begun() -> AsyncIterator[bytes]:
        try:
            first = await anext(chunks, b"")
            yield b""  # taken below, so that closing this closes `chunks`
            yield first
            async for chunk in chunks:
                await asyncio.sleep(0)  # a fast reader would otherwise keep all other requests waiting
                yield chunk
        finally:
            await close_chunks(chunks)

    resumed = begun()
    await anext(resumed)
    return resumed


def _reply(answer: object, cors: bool, status: int) -> Reply:
    if not isinstance(answer, Special):
        return Reply(status, json_codec.encode(answer), cors)
    if isinstance(answer, Streamed):
        return Reply(status, answer.chunks, cors, answer.content_type.encode())
    if isinstance(answer, Text):
        return Reply(status, answer.body, cors, answer.content_type.encode())
    if isinstance(answer, Page):
        return Reply(answer.status, answer.body, cors, answer.content_type.encode(), answer.headers)
    assert isinstance(answer, WithHeaders)
    headers = tuple((header.name.lower().encode(), text.encode()) for header, text in answer.headers.items())
    return Reply(status, json_codec.encode(answer.value), cors, more=headers)


def _bare_client_id(header: str | None) -> str:
    """The client id of a header without a token; empty for any other header, also for a token without a client id."""
    words = (header or "").strip().strip('"').split()
    return words[0] if len(words) == 1 and not words[0].startswith(_TOKEN_START) else ""


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")
