"""ASGI middleware around the application, for HTTP requests; WebSockets pass through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from litestar.types import Receive, Scope, Send

from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import ServiceError
from emulator.journal import Entry
from emulator.observability.logs import LONGEST_PATH, log_request
from emulator.observability.request_context import bind_context
from emulator.realtime.connection import Connection, Peer, PeerFactory
from emulator.web.front import HotPath


class Application(PeerFactory, Protocol):
    """An application that serves HTTP by ASGI and opens peers for WebSockets."""

    @property
    def hot_path(self) -> HotPath | None:
        """Serves hot endpoints without ASGI; `None` if each request must pass through the application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Middleware:
    """Forwards everything to the application it wraps. It sees every request, so there is no hot path."""

    def __init__(self, app: Application) -> None:
        self._app = app

    @property
    def hot_path(self) -> HotPath | None:
        return None

    @property
    def limits(self) -> Limits:
        """The limits of the application."""
        return self._app.limits

    async def open_peer(self, path: str, query: str, connection: Connection) -> Peer:
        """Open the peer of a WebSocket; raises `ServiceError` if the handshake is refused."""
        return await self._app.open_peer(path, query, connection)

    def refused(self, error: ServiceError) -> None:
        """Count an error response that the application does not see."""
        self._app.refused(error)

    def record(self, path: str, entry: Callable[[str], Entry]) -> None:
        """Add the entry of an answer that no endpoint gave to the journal of the path's namespace."""
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
