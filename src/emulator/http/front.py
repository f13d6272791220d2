"""The outermost layer: normalizes paths, handles preflights, and sends hot endpoints past the router."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import Receive, Scope, Send

from emulator.config.settings import Limits
from emulator.errors import ServiceError
from emulator.faults import REQUEST
from emulator.http.dispatch import DISPATCHER, STREAM, Dispatcher
from emulator.http.recording import record_unrouted
from emulator.http.refusals import header_not_allowed, wrong_method
from emulator.http.request import Request
from emulator.http.response import ALLOWED_HEADERS, Reply, close_chunks, error_reply
from emulator.journal import Entry
from emulator.observability.request_context import FAULT, HINT, MARK, PRODUCTION, RequestContext, bind_context
from emulator.observability.response_counts import Recorder
from emulator.realtime.connection import Connection, Peer
from emulator.realtime.gateway import Gateway
from emulator.wire.url import SERVICE, normalize_path

HOT: Final = frozenset(
    {
        ("GET", f"{SERVICE}vote"),
        ("POST", f"{SERVICE}vote"),
        ("POST", f"{SERVICE}rank"),
        ("POST", f"{SERVICE}accumulate"),
        ("GET", f"{SERVICE}channel_state"),
        ("PATCH", f"{SERVICE}channel_state"),
    }
)
"""Endpoints under the highest load.

Each also has a route with byte-identical replies; bypassing the router halves the time of a request (`benchmarks/`).
"""
_PREFLIGHT: Final = ((b"access-control-max-age", b"7200"),)
"""Browsers cache a preflight for two hours at most. Uncached, each vote from a page would cost two requests."""


Responder = Callable[[Request], Coroutine[Any, Any, Reply]]
"""Answers a request; every error becomes a reply."""


class HotPath(Protocol):
    """Handles hot endpoints for requests that have arrived whole."""

    max_body: int
    """The size of the largest body, in bytes."""

    def find(self, method: bytes, path: bytes) -> Responder | None:
        """Return the fast handler for this method and path, given as bytes of the request.

        Returns `None` if there is none.
        """


class _HotEndpoints:
    """The hot path of one service."""

    def __init__(self, dispatcher: Dispatcher, hot: frozenset[tuple[str, str]]) -> None:
        self.max_body = dispatcher.limits.body
        self._dispatcher = dispatcher
        self._endpoints = {
            (method.encode(), path.encode()): partial(dispatcher.answer, dispatcher.bound(method, path))
            for method, path in hot
        }
        self._served: Mapping[tuple[bytes, bytes], Responder] = self._endpoints

    def find(self, method: bytes, path: bytes) -> Responder | None:
        return self._served.get((method, path))

    def check_faults(self) -> None:
        """Disable the hot path while a fault may act on requests, because only requests over ASGI apply faults."""
        self._served = {} if REQUEST in self._dispatcher.faults.kinds else self._endpoints


class Running(Protocol):
    """The part of a running service that `Front` uses."""

    dispatcher: Dispatcher
    gateway: Gateway

    @property
    def metrics(self) -> Recorder: ...

    async def reset(self) -> None:
        """Delete all data and reset the clock."""

    async def copy(self, source: Any) -> None:
        """Replace all data and the clock with another running service's."""

    async def size(self) -> int:
        """Return the number of records."""

    @property
    def sockets(self) -> int:
        """The number of open connections of games and pages."""

    def drop_on_close(self) -> None:
        """Delete the namespace's data from storage when the service closes."""


class Front:
    """The ASGI application of one running service."""

    def __init__(self, routes: Litestar, service: Running, *, hot: frozenset[tuple[str, str]] = HOT) -> None:
        self._routes = routes
        self._service = service
        self._dispatcher = service.dispatcher
        self._hot = hot
        self.hot_path: HotPath | None = (hot_path := _HotEndpoints(service.dispatcher, hot))
        service.dispatcher.faults.on_change(hot_path.check_faults)

    @property
    def limits(self) -> Limits:
        return self._service.gateway.limits

    async def open_peer(self, path: str, query: str, connection: Connection) -> Peer:
        gateway = self._service.gateway
        await gateway.disturb(path)  # a drop of the namespace ends it
        return gateway.open(path, query, connection)

    def refused(self, error: ServiceError) -> None:
        """Count a request rejected before dispatch, such as a malformed one."""
        self._service.metrics.refused(error)

    def record(self, path: str, entry: Callable[[str], Entry]) -> None:
        """Add a journal entry for a response that no endpoint made. Does nothing without a journal."""
        if self._dispatcher.journal.is_on:
            self._dispatcher.journal.add(entry(path))

    def record_answer(
        self, context: RequestContext, method: str, path: str, reply: Reply, error: ServiceError | None = None
    ) -> None:
        """Record a response that came from no endpoint in the journal. Does nothing without a journal."""
        record_unrouted(self._dispatcher.journal, context, method, path, reply, error)

    async def reset(self) -> None:
        """Delete all data and close all sockets."""
        self._service.gateway.close_all()
        await self._service.reset()

    async def copy(self, source: Front) -> None:
        """Close all sockets, and replace all data and the clock with another service's."""
        self._service.gateway.close_all()
        await self._service.copy(source._service)

    async def size(self) -> int:
        """Return the number of records."""
        return await self._service.size()

    @property
    def sockets(self) -> int:
        return self._service.sockets

    def drop_on_close(self) -> None:
        self._service.drop_on_close()

    def end_held(self) -> None:
        """End all requests that wait for an event, because the service stops or the namespace is dropped."""
        self._dispatcher.held.end()
        self._dispatcher.faults.release_all()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the ASGI lifespan."""
        if scope["type"] != ScopeType.HTTP:  # WebSockets use `open_peer` instead
            await self._routes(scope, receive, send)
            return
        context = bind_context(scope)
        if self._dispatcher.parity.is_on:
            send = self._with_sandbox_headers(context, send)
        path = normalize_path(scope["path"])
        method = scope["method"]
        if (method, path) in self._hot:
            reply = await self._dispatcher.perform(method, path, scope, receive)
            await reply(send)
        elif method == "OPTIONS":
            reply, error = preflight_reply(path, scope["headers"])
            record_unrouted(self._dispatcher.journal, context, method, path, reply, error)
            await reply(send)
        else:
            state = {**scope.get("state", {}), DISPATCHER: self._dispatcher}
            inner: Any = {**scope, "path": path, "raw_path": path.encode(), "state": state}
            try:
                await self._routes(inner, receive, send)
            finally:
                if (stream := state.get(STREAM)) is not None:
                    await close_chunks(stream)

    def _with_sandbox_headers(self, context: RequestContext, send: Send) -> Send:
        """Return a `send` that adds the mark, the verdict of production, the fault and the hint to the headers."""

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                mark = context.mark or self._dispatcher.changes.mark
                marks = [(MARK, b"%d" % mark)] if mark else []
                verdict = [(PRODUCTION, context.production.encode())] if context.production else []
                fault = [(FAULT, context.fault.encode())] if context.fault else []
                hint = [(HINT, context.hint_header)] if context.hint else []
                message["headers"] = [*marks, *verdict, *fault, *hint, *message["headers"]]
            await send(message)

        return send_with_headers


def preflight_reply(path: str, headers: Iterable[tuple[bytes, bytes]]) -> tuple[Reply, ServiceError | None]:
    """Return the response to a preflight: any origin may call the service API, none may call the rest (ruling W5).

    The response lists the allowed headers; the browser compares them, and refuses the request. The error is only for
    the journal.
    """
    if path.startswith("/v1/"):
        return Reply(200, b"{}", cors=True, more=_PREFLIGHT), _refusal_of(headers)
    error = wrong_method(path=path[:100], method="OPTIONS")
    return error_reply(error, cors=False), error


def _refusal_of(headers: Iterable[tuple[bytes, bytes]]) -> ServiceError | None:
    """Return the error for a preflight that asks for a header which pages may not send; `None` if all are allowed."""
    asked = b",".join(value for name, value in headers if name == b"access-control-request-headers").decode("latin-1")
    names = {name.strip().lower() for name in asked.split(",")} - {""}
    extra = sorted(names - {name.lower() for name in ALLOWED_HEADERS})
    if not extra:
        return None
    allowed = ", ".join(ALLOWED_HEADERS)
    return header_not_allowed(header=", ".join(extra)[:200], allowed=allowed)
