"""Takes the client's address from `X-Forwarded-For` of trusted proxies."""

from __future__ import annotations

import ipaddress
from typing import Any

from litestar.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from emulator.server.middleware import Application, Middleware


class ProxyHeaders(Middleware):
    """Trusts `X-Forwarded-For` from `proxies` if it is an IP address; else keeps the address of the connection."""

    def __init__(self, app: Application, proxies: tuple[str, ...]) -> None:
        super().__init__(app)
        self._apply_headers = ProxyHeadersMiddleware(_ignore, list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request: Any = scope
        connected = request["client"]
        await self._apply_headers(request, receive, send)  # type: ignore[arg-type]
        if request["client"] and not _is_address(request["client"][0]):
            request["client"] = connected
        await self._app(scope, receive, send)


async def _ignore(scope: Any, receive: Any, send: Any) -> None:
    """Do nothing: uvicorn's middleware is only used to edit the scope."""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # an IPv6 zone may be any text
