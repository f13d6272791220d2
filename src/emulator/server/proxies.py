"""Takes the client's address from `X-Forwarded-For` of trusted proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any

from litestar.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from emulator.realtime.connection import Connection, Peer
from emulator.server.middleware import Application, Middleware
from emulator.web.front import HotPath
from emulator.web.request import WholeRequest
from emulator.web.response import Reply


class ProxyHeaders(Middleware):
    """Trusts `X-Forwarded-For` from `proxies` if it is an IP address; else keeps the address of the connection."""

    def __init__(self, app: Application, proxies: tuple[str, ...]) -> None:
        super().__init__(app)
        self._apply_headers = ProxyHeadersMiddleware(_ignore, list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._forward(scope)
        await self._app(scope, receive, send)

    @property
    def hot_path(self) -> HotPath | None:
        """The hot path of the application, with the forwarded address of the client."""
        inner = self._app.hot_path
        return None if inner is None else _ForwardedHotPath(inner, self._forward)

    async def open_peer(self, path: str, query: str, connection: Connection) -> Peer:
        """Open the peer of a WebSocket; its address is the forwarded one too."""
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
        self.serves = inner.serves

    async def answer(self, method: bytes, path: bytes, request: WholeRequest) -> Reply:
        scope: dict[str, Any] = {"type": "http", "client": (request.peer, 0), "headers": list(request.headers.items())}
        await self._forward(scope)
        request.peer = scope["client"][0]
        return await self._inner.answer(method, path, request)
