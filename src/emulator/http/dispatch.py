"""Dispatch of every HTTP call to its endpoint: check the caller and the body's size, run it, count and record."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from types import AsyncGeneratorType
from typing import Any

from litestar.types import Receive

from emulator.core.callers import Caller, IdentifyCaller, finish_recording_ids, role_error
from emulator.core.changes import Changes
from emulator.core.clock import monotonic
from emulator.core.errors import EngineError, ServiceError
from emulator.core.faults import DELAY, RESET, STALL, TRUNCATE, FaultError, FaultHit, Faults, FaultSubject
from emulator.core.faults import REQUEST as REQUESTS
from emulator.core.hints import Hints
from emulator.core.journal import HIDDEN, MAX_BODY, REQUEST, Journal
from emulator.core.observability.entries import add_bodies, basic_entry
from emulator.core.observability.masking import WHOLE_BODY, masked_path, masked_target
from emulator.core.observability.metrics import Metrics, error_for_client
from emulator.core.observability.request_context import RequestContext, in_context, inner_context
from emulator.core.parity import UNJUDGED, Parity
from emulator.core.settings import Limits
from emulator.core.wire.refusals import malformed_json
from emulator.core.wire.url import normalize_path, parse_query
from emulator.http.access import Access, authorization_header, bare_client_id
from emulator.http.endpoint import Audience, Call, Endpoint, EndpointTable
from emulator.http.faulty_requests import NO_RESPONSE_STATUS, hang_up, stall, truncate_reply
from emulator.http.long_requests import HeldRequests, Uploads
from emulator.http.refusals import no_path
from emulator.http.request import Request, form_to_json
from emulator.http.response import (
    Reply,
    close_chunks,
    error_page,
    error_reply,
    in_one_chunk,
    produce_first_chunk,
    success_reply,
)

_MALFORMED_JSON = "wire.malformed_json"
_MAX_ENCODING_NAME = 64
"""Characters of a content encoding that an error shows."""
_HIDDEN_BODY = HIDDEN.encode()
"""The body of a request that is hidden, or that was read in pieces."""


@dataclass(eq=False, repr=False)
class Dispatcher:
    """Runs the endpoints of one service after their checks."""

    table: EndpointTable
    """The endpoints. Services share it."""
    service: Any
    """The object whose parts handle the endpoints."""
    _: KW_ONLY
    access: Access
    identify: IdentifyCaller
    limits: Limits
    recorder: Metrics
    changes: Changes
    parity: Parity
    journal: Journal
    faults: Faults
    hints: Hints
    uploads: Uploads

    def __post_init__(self) -> None:
        self.held = HeldRequests()

    def _start_endpoint(self, endpoint: Endpoint, call: Call) -> Awaitable[object]:
        """Start an endpoint of this service."""
        part = endpoint.part(self.service)
        if endpoint.streamed:
            return self.uploads.run_upload(partial(endpoint.handler, part), call)
        return endpoint.handler(part, call)

    async def serve_request(self, endpoint: Endpoint, request: Request, receive: Receive) -> Reply:
        """Run one of this service's endpoints for an ASGI server; every error becomes a reply. Faults act here."""
        hit = await self._choose_fault(endpoint, request)
        if hit is None or await _reaches_endpoint(hit):
            reply = await (self._hold(endpoint, request, receive) if endpoint.held else self.answer(endpoint, request))
            if hit is not None and hit.fault.effect == TRUNCATE:
                reply = truncate_reply(reply, hit.fault.bytes or 0, request)
        else:
            reply = await self._answer_by_fault(hit, endpoint, request, receive)
        if request.context.is_head and not isinstance(reply.body, bytes):  # the body might never end
            await close_chunks(reply.body)
            reply.body = in_one_chunk(b"")
        return reply

    async def _choose_fault(self, endpoint: Endpoint, request: Request) -> FaultHit | None:
        """Return the fault that acts on a request of an extension, if one does."""
        if REQUESTS not in self.faults.kinds or not endpoint.allows_any_origin:
            return None
        hit = self.faults.choose(await self._fault_subject(endpoint, request))
        request.context.fault = hit.header if hit else ""
        return hit

    async def _answer_by_fault(self, hit: FaultHit, endpoint: Endpoint, request: Request, receive: Receive) -> Reply:
        """Respond with a fault's error, or close the connection if the fault sends none."""
        with suppress(ServiceError):  # to close a connection with unread data would reset it
            await request.body(getattr(self.limits, endpoint.limit))
        reply = self._fault_reply(hit, endpoint, request)
        if reply.status:
            return reply
        if hit.fault.effect == STALL:
            await stall(hit, receive)
        hang_up(request, resets=hit.fault.effect == RESET)
        return Reply(NO_RESPONSE_STATUS, b"")

    def _fault_reply(self, hit: FaultHit, endpoint: Endpoint, request: Request) -> Reply:
        """Return the error of a fault, and record it. The status is 0 if the fault sends no response."""
        started = monotonic()
        error: FaultError = hit.error()
        request.context.route, request.context.production = endpoint.path, ""
        reply = error_reply(error, cors=True, shows_code=True)
        if error.status:
            self.recorder.endpoints[endpoint.method, endpoint.path].add(error.status, monotonic() - started)
        self._record_response(endpoint, request, reply if error.status else Reply(0, b""), monotonic() - started, error)
        return reply

    async def _fault_subject(self, endpoint: Endpoint, request: Request) -> FaultSubject:
        """Return the facts that faults match. Authenticates only if a fault has a condition on the caller."""
        attempt = FaultSubject(REQUESTS, endpoint.method, endpoint.path)
        if not self.faults.needs_caller(attempt):
            return attempt
        header = authorization_header(request.headers)
        if client_id := bare_client_id(header):
            return attempt._replace(client_id=client_id)
        try:
            caller = await self.access.caller_without_counting(header)
            channel = caller.channel(parse_query(request.query).get("channel_id", ""))
        except (ServiceError, EngineError):
            return attempt
        return attempt._replace(caller=caller, client_id=caller.client_id, channel=channel)

    async def _hold(self, endpoint: Endpoint, request: Request, receive: Receive) -> Reply:
        """Run an endpoint that waits for something; every error becomes a reply."""
        started = monotonic()
        try:
            return await self.held.answer(lambda: self.answer(endpoint, request), receive)
        except ServiceError as error:  # `answer` raises none
            reply = self._error_reply(endpoint, error)
            self._record_response(endpoint, request, reply, monotonic() - started, error)
            return reply

    async def answer(self, endpoint: Endpoint, request: Request) -> Reply:
        """Run an endpoint; every error becomes a reply."""
        started = monotonic()
        context, method, path = request.context, endpoint.method, endpoint.path
        context.route, context.mark = path, self.changes.mark
        self.parity.check_endpoint(method, path)
        failure: ServiceError | None = None
        try:
            answer = await self._run_endpoint(endpoint, request)
            reply = success_reply(answer, endpoint.allows_any_origin, endpoint.status, endpoint.content_type)
        except Exception as exception:
            failure = error_for_client(exception, endpoint.title, self.recorder)
            encoding = request.headers.get(b"content-encoding")
            if encoding and failure.refused and failure.refused.code == _MALFORMED_JSON:
                named = encoding.decode("ascii", "backslashreplace")[:_MAX_ENCODING_NAME]
                failure = malformed_json(f"its Content-Encoding is {named}; send it uncompressed, without that header")
            reply = self._error_reply(endpoint, failure)
        seconds = monotonic() - started
        self.recorder.endpoints[method, path].add(reply.status, seconds)
        if self.hints.is_on:
            await self.hints.judge_request(context)
        if context.production or context.facts:
            self.parity.settle_verdict(context, endpoint.title, reply.status, is_counted=endpoint.allows_any_origin)
        if failure is not None and endpoint.is_body_read and self.journal.is_on:
            await request.read_arriving_body()
        self._record_response(endpoint, request, reply, seconds, failure)
        del failure  # its traceback refers to this frame: a circle, which only a collection of garbage would free
        return reply

    def _record_response(
        self, endpoint: Endpoint, request: Request, reply: Reply, seconds: float, failure: ServiceError | None
    ) -> None:
        """Add the response to the journal, without secrets."""
        if not self.journal.is_on or not endpoint.is_in_journal:
            return
        title, path, query = endpoint.title, endpoint.path, request.query
        if request.parts:
            path = masked_path(path.format(**request.parts))
            title = f"{endpoint.method} {path}"
        target = masked_target(path, query, endpoint.shown_parameters) if query else path
        entry = basic_entry(REQUEST, request.context, title, target, reply.status, seconds)
        answer = reply.content
        add_bodies(entry, request.raw, answer, failure, endpoint.secrets)
        entry.request_size = request.size
        if WHOLE_BODY in endpoint.secrets:
            if request.size:
                entry.request = _HIDDEN_BODY
            if failure is None and b':"' not in answer and b'["' not in answer:  # numbers alone are no secret
                entry.response = answer[:MAX_BODY]
        self.journal.add(entry)

    async def run_as(self, method: str, path: str, caller: Caller, query: Mapping[str, str], body: bytes) -> object:
        """Run an endpoint for a caller whose token and role need no check. Raises the endpoint's errors."""
        self.access.check_registered(caller.client_id)
        caller, recording = await self.identify(caller, writes=True)
        try:
            call = Call(caller, query, body, "", "", in_one_chunk(body))
            return await self._start_endpoint(self.table.endpoints[method, path], call)
        finally:
            if recording is not None:
                await finish_recording_ids(recording)

    async def answer_own_request(
        self, method: str, path: str, query: bytes, authorization: str, body: bytes, *, peer: str
    ) -> tuple[Reply, RequestContext]:
        """Handle a request that the service makes to itself, under the current request's id.

        An endpoint's error becomes a response, and so does a fault, whose status is 0 if it sends none. Raises
        `NotFound` for an unknown endpoint.
        """
        name = method, normalize_path(path)
        endpoint = self.table.endpoints.get(name)
        if endpoint is None:
            raise no_path(path=f"{method[:10]} {name[1][:100]}")
        context = inner_context(UNJUDGED)
        request = Request(context, {b"authorization": authorization.encode()}, query, peer, body, len(body))
        with in_context(context):
            hit = await self._choose_fault(endpoint, request)
            if hit is not None and not await _reaches_endpoint(hit):
                return self._fault_reply(hit, endpoint, request), context
            reply = await self.answer(endpoint, request)
            if hit is not None and hit.fault.effect == TRUNCATE:
                reply = error_reply(hit.error(), cors=True)
            return reply, context

    async def _run_endpoint(self, endpoint: Endpoint, request: Request) -> object:
        access = self.access
        headers, peer, context = request.headers, request.peer, request.context
        caller, client_id, header = None, "", authorization_header(headers)
        if endpoint.audience is Audience.CLIENTS:
            # Most tokens were verified before: that takes no coroutine.
            caller = access.cached_caller(header) or await access.verified_caller(header, peer)
            context.caller = caller
            access.rate_limits.check_caller(caller, peer)
            if caller.role not in endpoint.roles:
                raise role_error(caller, endpoint.roles)
        elif endpoint.audience is Audience.CLIENT_ID:
            caller, client_id = await access.identify_client(request)
        else:
            access.check_tokenless(endpoint, request)
        is_large = caller is None or caller.role in endpoint.limit_roles
        limit: int = getattr(self.limits, endpoint.limit) if is_large else self.limits.body
        body = await self._read_body(endpoint, request, limit, header if caller is not None else None)
        if body and endpoint.audience is Audience.CONTROL and endpoint.body is not None:
            body = form_to_json(body, headers, endpoint.body)
        recording = None
        if caller is not None and caller.user_id is not None:
            caller, recording = await self.identify(caller, writes=endpoint.method != "GET")
        try:
            query, chunks = parse_query(request.query), request.chunks(limit)
            if request.parts:
                query = {**query, **request.parts}
            if query and caller is not None and self.hints.is_on:
                self.hints.judge_query(context, caller, query)
            scheme = request.scope["scheme"] if request.scope else "http"
            call = Call(caller, query, body, peer, client_id, chunks, headers, scheme)
            answer = await self._start_endpoint(endpoint, call)
            context.mark = self.changes.mark  # before anything else runs, so that later effects have later marks
        finally:
            if recording is not None:
                await finish_recording_ids(recording)
        if not isinstance(answer, AsyncGeneratorType) or (endpoint.held and context.is_head):
            return answer
        chunks = self.held.stream(answer) if endpoint.held else answer

        def is_admitted() -> bool:
            return caller is None or access.is_admitted(caller.client_id, caller.grant)

        return await produce_first_chunk(chunks, is_admitted)

    def _error_reply(self, endpoint: Endpoint, error: ServiceError) -> Reply:
        if endpoint.audience is Audience.PAGE:
            return error_page(error)
        return error_reply(error, cors=endpoint.allows_any_origin, shows_code=self.parity.is_on)

    async def _read_body(self, endpoint: Endpoint, request: Request, limit: int, header: str | None) -> bytes:
        """Read the body, unless the endpoint does. The token of this header must be valid until all of it has arrived.

        `header` is `None` for a request without a token.
        """
        receive = None if header is None else request.receive
        if not endpoint.is_body_read:
            if receive is not None:
                request.receive = partial(self.access.receive_verified, receive, header)
            return b""
        body = await request.body(limit)
        # The end of chunks may be long in coming, even without a body.
        if receive is not None and (body or b"transfer-encoding" in request.headers):
            await self.access.caller_without_counting(header)
        return body


async def _reaches_endpoint(hit: FaultHit) -> bool:
    """Whether the endpoint handles a request all the same, after the delay of the fault."""
    return hit.fault.effect == TRUNCATE or (hit.fault.effect == DELAY and await hit.wait_for_delay())
