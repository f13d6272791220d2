"""The application of one service: finds the endpoint of each request, and responds itself where there is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from litestar.types import HTTPScope, Receive, Scope, Send

from emulator.control.demo import Demo
from emulator.control.operation import Control
from emulator.core.errors import MethodNotAllowed, ServiceError, TooManyRequests
from emulator.core.observability.entries import Unrouted, unrouted_entry
from emulator.core.observability.request_context import RequestContext, bind_context
from emulator.core.wire.url import normalize_path
from emulator.http.dispatch import Dispatcher
from emulator.http.refusals import header_not_allowed
from emulator.http.request import request_from_scope
from emulator.http.response import ALLOWED_HEADERS, Reply, error_reply
from emulator.realtime.connection import Peer
from emulator.realtime.gateway import Gateway
from emulator.realtime.websocket import WebSocket

_BROWSER_PATHS = ("/favicon.ico", "/apple-touch-icon", "/robots.txt", "/.well-known/")
"""What browsers request by themselves: its refusal would hide one that matters."""
_PREFLIGHT_HEADERS = ((b"access-control-max-age", b"7200"),)
"""Browsers cache a preflight for two hours at most. Uncached, each vote from a page would cost two requests."""
_PRIVATE_NETWORK_HEADERS = ((b"access-control-allow-private-network", b"true"),)
"""For browsers that ask before a page of a public site calls this machine."""


class ServiceApp:
    """What a running service is for its process: an ASGI application, which can be emptied, copied and dropped."""

    control: Control
    demo: Demo
    dispatcher: Dispatcher
    gateway: Gateway
    is_dropped = False
    """Whether its data is deleted from storage when it closes."""

    @property
    def sockets(self) -> int:
        """The number of open connections of games and pages."""
        return len(self.gateway.admission)

    def expel_ended(self) -> int:
        """Check running uploads again, and close the sockets whose secret or link has ended; return how many."""
        access = self.dispatcher.access
        access.recheck_uploads()
        return self.gateway.expel_callers(lambda caller: access.is_admitted(caller.client_id, caller.grant))

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        return await self.gateway.open(path, query, connection)

    def count_refusal(self, error: ServiceError) -> None:
        """Count a request rejected before dispatch, such as a malformed one."""
        self.dispatcher.recorder.count_refusal(error)

    def record(self, request: Unrouted) -> None:
        """Add a journal entry for a response that no endpoint made. Does nothing without a journal."""
        if not request.path.startswith(_BROWSER_PATHS):
            self.dispatcher.journal.record(unrouted_entry, request)

    async def reset(self) -> None:
        """Delete all data, reset the clock and close all sockets."""
        self.gateway.close_all()
        await self.control.reset()

    async def copy(self, source: ServiceApp) -> None:
        """Replace all data and the clock with another namespace's, and close all sockets."""
        self.gateway.close_all()
        await self.control.copy(source.control)

    def end_held(self) -> None:
        """End all requests that wait for an event, because the service stops or the namespace is dropped."""
        self.dispatcher.held.end_all()
        self.dispatcher.faults.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request. WebSockets use `open_peer` instead."""
        request: Any = scope
        context = bind_context(request)
        if self.dispatcher.parity.is_on:
            send = self._with_sandbox_headers(context, send)
        method, path = request["method"], normalize_path(request["path"])
        if method == "HEAD":  # the server sends no body
            context.is_head, method = True, "GET"
        request = {**request, "method": method, "path": path}
        if found := self.dispatcher.table.find(method, path):
            endpoint, parts = found
            reply = await self.dispatcher.serve_request(endpoint, request_from_scope(request, receive, parts), receive)
        else:
            reply, error = self._reply_unserved(method, path, request)
            self.record(Unrouted(context, method, path, reply.status, reply.content, error))
        await reply(request, receive, send)

    def _reply_unserved(self, method: str, path: str, scope: HTTPScope) -> tuple[Reply, ServiceError | None]:
        """Return the response to a preflight, or the error for a request that no endpoint answers; count it."""
        dispatcher = self.dispatcher
        try:
            dispatcher.access.rate_limits.check_address(scope["client"][0] if scope["client"] else "")
        except TooManyRequests as refusal:
            dispatcher.recorder.count_refusal(refusal)
            error: ServiceError = refusal
        else:
            if method == "OPTIONS":
                return self.preflight_reply(path, scope["headers"])
            error = dispatcher.table.routing_error(method, path, guesses=dispatcher.journal.is_on)
            if error.status == MethodNotAllowed.status:
                dispatcher.parity.judge_unsupported_method(method, path)
        return error_reply(error, cors=path.startswith("/v1/"), shows_code=dispatcher.parity.is_on), error

    def preflight_reply(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> tuple[Reply, ServiceError | None]:
        """Return the response to a preflight: any origin may call the service API, none may call the rest (ruling W5).

        The response lists the allowed headers; the browser compares them, and refuses the request. The error is only
        for the journal.
        """
        if self.dispatcher.table.is_open(path):
            is_private = (b"access-control-request-private-network", b"true") in headers
            more = (*_PREFLIGHT_HEADERS, *_PRIVATE_NETWORK_HEADERS) if is_private else _PREFLIGHT_HEADERS
            return Reply(200, b"{}", cors=True, more=more), _header_refusal(headers)
        error = self.dispatcher.table.routing_error("OPTIONS", path, guesses=False)
        return error_reply(error, cors=False), error

    def _with_sandbox_headers(self, context: RequestContext, send: Send) -> Send:
        """Return a `send` that adds the mark, the verdict of production, the fault and the hint to the headers."""

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = context.sandbox_headers(self.dispatcher.changes.mark)
                message["headers"] = [*own, *message["headers"]]
            await send(message)

        return send_with_headers


def _header_refusal(headers: Iterable[tuple[bytes, bytes]]) -> ServiceError | None:
    """Return the error for a preflight that asks for a header which pages may not send; `None` if all are allowed."""
    asked = b",".join(value for name, value in headers if name == b"access-control-request-headers").decode("latin-1")
    names = {name.strip().lower() for name in asked.split(",")}
    extra = sorted(names - {"", *(name.lower() for name in ALLOWED_HEADERS)})
    if not extra:
        return None
    allowed = ", ".join(ALLOWED_HEADERS)
    return header_not_allowed(header=", ".join(extra)[:200], allowed=allowed)
