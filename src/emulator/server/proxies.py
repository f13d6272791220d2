"""Where a request comes from, if a proxy that was named passes it on."""

from __future__ import annotations

import ipaddress
from typing import Any

from litestar.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from emulator.server.middleware import Application, Middleware


class ProxyHeaders(Middleware):
    """Believes what `proxies` say in `X-Forwarded-For`, if it is an address; else the connection says where it ends."""

    def __init__(self, app: Application, proxies: tuple[str, ...]) -> None:
        super().__init__(app)
        self._take_word = ProxyHeadersMiddleware(_nothing, list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request: Any = scope
        connected = request["client"]
        await self._take_word(request, receive, send)  # type: ignore[arg-type]
        if request["client"] and not _is_address(request["client"][0]):
            request["client"] = connected
        await self._app(scope, receive, send)


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """The application of the middleware, of which only what it does to the scope is wanted."""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # behind which any text may stand
