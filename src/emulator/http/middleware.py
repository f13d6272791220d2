"""ASGI middleware around the application, for HTTP requests; WebSockets pass through."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from litestar.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import ServiceError
from emulator.http.front import HotPath, Responder
from emulator.http.request import Request
from emulator.http.response import Reply
from emulator.journal import Entry
from emulator.observability.logs import LONGEST_PATH, log_request
from emulator.observability.request_context import bind_context
from emulator.realtime.connection import Connection, Peer, PeerFactory


class Application(PeerFactory, Protocol):
    """An application that serves HTTP by ASGI and opens peers for WebSockets."""

    @property
    def hot_path(self) -> HotPath | None:
        """Serves hot endpoints without ASGI; `None` if each request must pass through the application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Middleware:
    """Forwards everything to the application that it wraps. It must see every request, so it offers no hot path."""

    def __init__(self, app: Application) -> None:
        self._app = app

    @property
    def hot_path(self) -> HotPath | None:
        return None

    @property
    def limits(self) -> Limits:
        """The limits on requests that the application enforces."""
        return self._app.limits

    async def open_peer(self, path: str, query: str, connection: Connection) -> Peer:
        """Open the peer of a WebSocket; raises `ServiceError` if the handshake is refused."""
        return await self._app.open_peer(path, query, connection)

    def refused(self, error: ServiceError) -> None:
        """Count an error response that the application does not see."""
        self._app.refused(error)

    def record(self, path: str, entry: Callable[[str], Entry]) -> None:
        """Add an entry for a response that no endpoint made to the journal of the path's namespace."""
        self._app.record(path, entry)


class AccessLog(Middleware):
    """Logs each request once its response is complete."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        started = monotonic()
        status = size = 0

        async def send_and_count(message: Any) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        request: Any = scope
        context = bind_context(request)
        try:
            await self._app(scope, receive, send_and_count)
        finally:
            fields = {"method": request["method"], "path": request["path"][:LONGEST_PATH]}
            log_request(fields, status or 500, monotonic() - started, size, context.caller)


class ProxyHeaders(Middleware):
    """Trusts `X-Forwarded-For` from `proxies` if it is an IP address; otherwise keeps the connection's address."""

    def __init__(self, app: Application, proxies: tuple[str, ...]) -> None:
        super().__init__(app)
        self._apply_headers = ProxyHeadersMiddleware(_ignore, list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._forward(scope)
        await self._app(scope, receive, send)

    @property
    def hot_path(self) -> HotPath | None:
        """The hot path of the application, which receives the client's forwarded address."""
        inner = self._app.hot_path
        return None if inner is None else _ForwardedHotPath(inner, self._forward)

    async def open_peer(self, path: str, query: str, connection: Connection) -> Peer:
        """Open the peer of a WebSocket, with the client's forwarded address."""
        handshake: dict[str, Any] = {
            "type": "websocket",
            "client": (connection.address, 0),
            "headers": connection.headers,
        }
        await self._forward(handshake)
        connection.address = handshake["client"][0]
        return await super().open_peer(path, query, connection)

    async def _forward(self, scope: Any) -> None:
        connected = scope["client"]
        await self._apply_headers(scope, _ignore, _ignore)
        if scope["client"] and not _is_address(scope["client"][0]):
            scope["client"] = connected


async def _ignore(*_: object) -> Any:
    """Do nothing: uvicorn's middleware is only used to edit the scope."""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # an IPv6 zone may be any text


class _ForwardedHotPath:
    def __init__(self, inner: HotPath, forward: Callable[[Any], Awaitable[None]]) -> None:
        self._inner = inner
        self._forward = forward
        self.max_body = inner.max_body

    def find(self, method: bytes, path: bytes) -> Responder | None:
        answer = self._inner.find(method, path)
        return None if answer is None else partial(self._answer, answer)

    async def _answer(self, answer: Responder, request: Request) -> Reply:
        scope: dict[str, Any] = {"type": "http", "client": (request.peer, 0), "headers": list(request.headers.items())}
        await self._forward(scope)
        request.peer = scope["client"][0]
        return await answer(request)
