"""The outermost layer: spells paths one way, answers preflights, and gives the hot endpoints a way past the router."""

from __future__ import annotations

from typing import Any, Final, Protocol

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import Receive, Scope, Send

from emulator.config.settings import Limits
from emulator.errors import MethodNotAllowed, NotFound, ServiceError
from emulator.observability.recorder import Recorder
from emulator.observability.request_context import bind_context
from emulator.realtime.gateway import Gateway
from emulator.realtime.websocket import Peer, WebSocket
from emulator.web.aliases import SERVICE, resolved
from emulator.web.dispatch import DISPATCHER, Dispatcher
from emulator.web.openapi import PAGES
from emulator.web.response import Reply, error_reply

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
"""Endpoints that viewers call in crowds. Each is an ordinary route too, with the same answers byte for byte; going past
the router saves about half of the time of a request (`benchmarks/`)."""


_PREFLIGHT: Final = ((b"access-control-max-age", b"7200"),)
"""Seconds in which a page need not ask again, as many as browsers keep to: else each vote of a page is two requests."""


class Running(Protocol):
    """A running service, as far as its front needs it."""

    dispatcher: Dispatcher
    gateway: Gateway

    @property
    def metrics(self) -> Recorder: ...

    async def reset(self) -> None:
        """Forget all data, and run the clock with the machine's."""
        ...


class Front:
    """An ASGI application around the routes, on behalf of one running service."""

    def __init__(self, routes: Litestar, service: Running, *, hot: frozenset[tuple[str, str]] = HOT) -> None:
        self._routes = routes
        self._service = service
        self._dispatcher = service.dispatcher
        self._hot = hot

    @property
    def limits(self) -> Limits:
        """How much a WebSocket may take."""
        return self._service.gateway.limits

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        """Who speaks on a WebSocket at a path; raises `NotFound` where there is none."""
        return self._service.gateway.open(path, query, connection)

    def refused(self, error: ServiceError) -> None:
        """Something was refused before it came so far: it cannot be read, or its head is too large."""
        self._service.metrics.refused(error)

    async def reset(self) -> None:
        """Leave the service as if it had just begun, without connections."""
        self._service.gateway.close_all()
        await self._service.reset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != ScopeType.HTTP:  # sockets do not come this way: `open_peer`
            await self._routes(scope, receive, send)
            return
        bind_context(scope)
        path = resolved(scope["path"])
        method = scope["method"]
        if (method, path) in self._hot:
            reply = await self._dispatcher.perform(method, path, scope, receive)
            await reply(send)
        elif method == "OPTIONS":
            await _preflight_reply(path)(send)
        elif path.startswith("/schema/") and path not in PAGES:  # for which Litestar would answer a page
            await error_reply(NotFound("Not Found", f"there is no {path[:100]}"), cors=False)(send)
        else:
            state = {**scope.get("state", {}), DISPATCHER: self._dispatcher}
            inner: Any = {**scope, "path": path, "raw_path": path.encode(), "state": state}
            await self._routes(inner, receive, send)


def _preflight_reply(path: str) -> Reply:
    """Pages of all origins may call the service; no page may call anything else (ruling W5)."""
    if path.startswith("/v1/"):
        return Reply(200, b"{}", cors=True, more=_PREFLIGHT)
    return error_reply(MethodNotAllowed("Method Not Allowed", f"{path[:100]} does not answer OPTIONS"), cors=False)
