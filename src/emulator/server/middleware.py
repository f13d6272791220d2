"""What may stand around the application, on the way of each HTTP request. WebSockets go past it."""

from __future__ import annotations

from typing import Any, Protocol

from litestar.types import Receive, Scope, Send

from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import ServiceError
from emulator.observability.access_log import LONGEST_PATH, log_request
from emulator.observability.request_context import bind_context
from emulator.realtime.websocket import Peer, PeerFactory, WebSocket


class Application(PeerFactory, Protocol):
    """What a server serves: ASGI for requests, and a way in for WebSockets."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Middleware:
    """An application around another, which changes nothing."""

    def __init__(self, app: Application) -> None:
        self._app = app

    @property
    def limits(self) -> Limits:
        """How much a WebSocket may take."""
        return self._app.limits

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        """Who speaks on a WebSocket at a path; raises a `ServiceError` where there is none."""
        return await self._app.open_peer(path, query, connection)

    def refused(self, error: ServiceError) -> None:
        """Something was refused before it came so far."""
        self._app.refused(error)


class AccessLog(Middleware):
    """Logs each answer, when the whole of it has been given to the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        began = monotonic()
        status = size = 0

        async def note(message: Any) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        request: Any = scope
        context = bind_context(request)
        try:
            await self._app(scope, receive, note)
        finally:
            what = {"method": request["method"], "path": request["path"][:LONGEST_PATH]}
            log_request(what, status or 500, monotonic() - began, size, context.caller)
