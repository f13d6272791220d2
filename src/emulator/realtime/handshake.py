"""The upgrade request of a WebSocket, its refusal, and its entry in the journal."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import unquote

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from emulator.core.clock import monotonic
from emulator.core.errors import ServiceError
from emulator.core.observability.entries import Unrouted
from emulator.core.observability.logs import log_request
from emulator.core.observability.request_context import RequestContext, request_id
from emulator.core.wire.json_codec import error_body


class Handshake:
    """One upgrade request, from its arrival to its response."""

    def __init__(self, request: Request) -> None:
        self._started = monotonic()
        path, _, self.query = request.path.partition("?")
        self.path = unquote(path)
        self.headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.raw_items()]
        self.id = request_id(dict(self.headers))

    def refusal(self, error: ServiceError) -> Response:
        """Return the response that refuses the handshake, and closes the connection."""
        body = error_body(error)
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
        headers["X-Request-Id"] = self.id
        if error.retry_after is not None:
            headers["Retry-After"] = str(error.retry_after)
        return Response(error.status, error.title, headers, body)

    def log_response(self, response: Response, context: RequestContext, error: ServiceError | None = None) -> Unrouted:
        """Log a refusal, and return what the journal records. (An accepted connection logs its requests instead.)"""
        status, body, seconds = response.status_code, bytes(response.body or b""), monotonic() - self._started
        if status != HTTPStatus.SWITCHING_PROTOCOLS:
            log_request({"action": "socket handshake"}, status, seconds, len(body), None)
        return Unrouted(context, "GET", self.path, status, body, error, self.query.encode(), seconds)


class HandshakeProtocol(ServerProtocol):
    """The library's protocol. It also answers some handshakes itself."""

    def select_subprotocol(self, subprotocols: Sequence[Subprotocol]) -> Subprotocol | None:
        """Return the first that the client offers: browsers fail a connection that answers none of theirs."""
        return next(iter(subprotocols), None)

    def send_response(self, response: Response) -> None:
        response.headers["X-Content-Type-Options"] = "nosniff"
        super().send_response(response)
