"""Dispatch of every HTTP call to its endpoint: check the caller and the body's size, run it, count and record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, NamedTuple

from litestar.types import HTTPScope, Receive

from emulator.callers import Caller, Identify, finish_recording
from emulator.changes import Changes
from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import ServiceError
from emulator.faults import REQUEST as REQUESTS
from emulator.faults import Faults
from emulator.hints import Hints
from emulator.http.access import Access, authorization_of
from emulator.http.endpoint import Audience, Bound, Call, Endpoint, Offer, Streamed
from emulator.http.faulty_requests import FaultyRequests
from emulator.http.long_requests import HeldRequests, Uploads
from emulator.http.recording import request_entry
from emulator.http.refusals import no_path
from emulator.http.request import Request, json_of, request_of
from emulator.http.response import (
    JSON,
    Reply,
    close_chunks,
    error_page,
    error_reply,
    in_one_chunk,
    reply_of,
    with_first_chunk,
)
from emulator.journal import Journal
from emulator.observability.request_context import bound_to, inner_context
from emulator.observability.response_counts import Recorder, answerable
from emulator.parity.service import UNJUDGED, Parity
from emulator.wire.url import normalize_path, query_of

_LONGEST_GUESS: Final = 64
"""Characters of an unknown path for which a similar one is looked for."""
_OWN: Final = (Audience.CONTROL, Audience.PAGE)
_OWN_HEADERS: Final = b"extcli-"
"""The start of the names of the headers that endpoints declare."""
DISPATCHER = "emulator.dispatcher"
"""The key of the dispatcher in an ASGI scope's state."""
STREAM: Final = "emulator.stream"
"""The key of the chunks of a reply in an ASGI scope's state."""


@dataclass(eq=False, repr=False)
class Dispatcher:
    """Runs the endpoints of one service after their checks."""

    offers: Mapping[tuple[str, str], Offer]
    """The endpoints by method and path. Services share it; each binds an endpoint at its first use."""
    service: Any
    """The object that the endpoints are bound to."""
    _: KW_ONLY
    access: Access
    identify: Identify
    limits: Limits
    recorder: Recorder
    changes: Changes
    parity: Parity
    journal: Journal
    faults: Faults
    hints: Hints
    uploads: Uploads

    def __post_init__(self) -> None:
        self.held = HeldRequests()
        self._bound: dict[tuple[str, str], Bound] = {}

    def serves(self, method: str, path: str) -> bool:
        """Whether this service has the endpoint; production lacks the control API and `authtoken`."""
        return (method, path) in self.offers

    def knows(self, path: str) -> bool:
        """Whether this service has an endpoint at `path`, for any method."""
        return any(path == known for _, known in self.offers)

    def nearest(self, path: str) -> str:
        """Return the path of an endpoint that is most like this one; empty if none is, or without a journal."""
        if not self.journal.is_on or len(path) > _LONGEST_GUESS:
            return ""
        from difflib import get_close_matches

        found = get_close_matches(path, {known for _, known in self.offers if "{" not in known}, 1, 0.8)
        return found[0] if found else ""

    @property
    def open_endpoints(self) -> list[tuple[str, str]]:
        """The methods and paths of the endpoints for extensions."""
        return [name for name, offer in self.offers.items() if offer.endpoint.allows_any_origin]

    def bound(self, method: str, path: str) -> Bound:
        """Return the endpoint with this method and path, bound to this service."""
        bound = self._bound.get((method, path))
        if bound is None:
            bound = self.offers[method, path].bind(self.service)
            if bound.endpoint.is_upload:
                bound = Bound(bound.endpoint, self.uploads.counted(bound.answer))
            self._bound[method, path] = bound
        return bound

    async def perform(self, method: str, path: str, scope: HTTPScope, receive: Receive) -> Reply:
        """Run one of this service's endpoints for an ASGI server; every error becomes a reply.

        A streamed reply is also stored in the scope's state under `STREAM`. The caller closes it, even if it could not
        be sent.
        """
        reply = await self._perform(self.bound(method, path), scope, receive)
        if not isinstance(reply.body, bytes):
            scope["state"][STREAM] = reply.body
        return reply

    async def _perform(self, bound: Bound, scope: HTTPScope, receive: Receive) -> Reply:
        request = request_of(scope, receive)
        if bound.endpoint.held:
            return await self._run_held(bound, request, receive)
        if REQUESTS in self.faults.kinds and bound.endpoint.allows_any_origin:
            faulty = FaultyRequests(self.faults, self.access, self.answer, self._refused, self.limits)
            return await faulty.perform(bound, request, receive)
        return await self.answer(bound, request)

    async def _run_held(self, bound: Bound, request: Request, receive: Receive) -> Reply:
        """Run an endpoint that waits for something; every error becomes a reply."""
        started = monotonic()
        try:
            return await self.held.answer(lambda: self.answer(bound, request), receive)
        except ServiceError as error:  # `answer` raises none
            reply = _error_reply(bound.endpoint, error, shows_code=self.parity.is_on)
            self._record(bound.endpoint, request, reply, monotonic() - started, error)
            return reply

    async def answer(self, bound: Bound, request: Request) -> Reply:
        """Run an endpoint; every error becomes a reply."""
        started = monotonic()
        endpoint, context = bound.endpoint, request.context
        method, path = endpoint.method, endpoint.path
        context.route, context.mark = path, self.changes.mark
        failure: ServiceError | None = None
        try:
            reply = reply_of(await self._answer(bound, request), endpoint.allows_any_origin, endpoint.status)
        except Exception as exception:
            failure = answerable(exception, endpoint.title, self.recorder)
            reply = _error_reply(endpoint, failure, shows_code=self.parity.is_on)
        seconds = monotonic() - started
        self.recorder.answered(method, path, reply.status, seconds)
        if context.production:
            self.parity.settle(context, endpoint.title, reply.status, is_counted=endpoint.allows_any_origin)
        if self.journal.is_on and endpoint.is_in_journal:
            if failure is not None and request.is_unread and endpoint.is_body_read:
                await request.read_arrived()
            self.journal.add(request_entry(endpoint, request, reply, seconds, failure))
        del failure  # its traceback refers to this frame: a circle, which only a collection of garbage would free
        return reply

    def _refused(
        self, endpoint: Endpoint[Any], request: Request, reply: Reply, seconds: float, error: ServiceError
    ) -> None:
        """Count and record an error that the endpoint did not cause; status 0 means that no response was sent."""
        if reply.status:
            self.recorder.answered(endpoint.method, endpoint.path, reply.status, seconds)
        self._record(endpoint, request, reply, seconds, error)

    def _record(
        self, endpoint: Endpoint[Any], request: Request, reply: Reply, seconds: float, error: ServiceError
    ) -> None:
        if self.journal.is_on and endpoint.is_in_journal:
            self.journal.add(request_entry(endpoint, request, reply, seconds, error))

    async def run(self, method: str, path: str, caller: Caller, query: Mapping[str, str], body: bytes) -> object:
        """Run an endpoint for a caller whose token and role need no check. Raises the endpoint's errors."""
        self.access.check_registered(caller.client_id)
        caller, recording = await self.identify(caller, writes=True)
        try:
            call = Call(caller, query, body, "", "", self.access.check_registered, in_one_chunk(body))
            return await self.bound(method, path).answer(call)
        finally:
            if recording is not None:
                await finish_recording(recording)

    async def _answer(self, bound: Bound, request: Request) -> object:
        endpoint, access = bound.endpoint, self.access
        headers, peer, context = request.headers, request.peer, request.context
        caller, client_id = None, ""
        if endpoint.audience is Audience.CLIENTS:
            header = authorization_of(headers)
            context.caller = caller = access.cached_caller(header) or await access.verify_uncached(header, peer)
            if caller.hint:
                context.hint = caller.hint
            access.check_caller(caller, endpoint, peer)
        elif endpoint.audience is Audience.CLIENT_ID:
            caller, client_id = await access.client_of(request)
        else:
            access.check_open(endpoint, request)
        # The control API and pages have no callers, and their limits are for all.
        is_large = endpoint.audience in _OWN if caller is None else caller.role in endpoint.limit_roles
        limit: int = getattr(self.limits, endpoint.limit) if is_large else self.limits.body
        body = await request.body(limit) if endpoint.is_body_read else b""
        if body and endpoint.audience is Audience.CONTROL and endpoint.body is not None:
            body = json_of(body, headers, endpoint.body_shape)
        recording = None
        if caller is not None and caller.user_id is not None:
            caller, recording = await self.identify(caller, writes=endpoint.method != "GET")
        try:
            query, chunks = query_of(request.query), request.chunks(limit)
            if request.parts:
                query = {**query, **request.parts}
            if "channel_id" in query and caller is not None and not caller.spans_channels:
                self.hints.other_channel(caller, query["channel_id"])
            call = Call(caller, query, body, peer, client_id, access.check_registered, chunks, headers)
            answer = await bound.answer(call)
            context.mark = self.changes.mark  # before anything else runs, so that later effects have later marks
        finally:
            if recording is not None:
                await finish_recording(recording)
        if not isinstance(answer, Streamed):
            return answer
        chunks = self.held.stream(answer.chunks) if endpoint.held else answer.chunks
        return Streamed(await with_first_chunk(chunks), answer.content_type)


def _error_reply(endpoint: Endpoint[Any], error: ServiceError, *, shows_code: bool) -> Reply:
    if endpoint.audience is Audience.PAGE:
        return error_page(error)
    return error_reply(error, cors=endpoint.allows_any_origin, shows_code=shows_code)


class InnerReply(NamedTuple):
    """The response to a request that the service makes to itself."""

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
    """Handle a request that the service makes to itself, under the current request's id.

    An endpoint's error becomes a response.
    A body over `max_size` bytes is cut to a beginning that is also over `max_size`. Raises `NotFound` for an unknown
    endpoint.
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
