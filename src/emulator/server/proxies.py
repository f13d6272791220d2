"""Takes the client's address from `X-Forwarded-For` of trusted proxies."""

from __future__ import annotations

import ipaddress
from typing import Any

from litestar.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from emulator.realtime.websocket import Peer, WebSocket
from emulator.server.middleware import Application, Middleware


class ProxyHeaders(Middleware):
    """Trusts `X-Forwarded-For` from `proxies` if it is an IP address; else keeps the address of the connection."""

    def __init__(self, app: Application, proxies: tuple[str, ...]) -> None:
        super().__init__(app)
        self._apply_headers = ProxyHeadersMiddleware(_ignore, list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._forward(scope)
        await self._app(scope, receive, send)

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
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
