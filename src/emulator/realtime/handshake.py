"""The handshake of a WebSocket: its peer, the response that refuses it, and its entries in log and journal."""

from __future__ import annotations

import logging
from functools import partial
from http import HTTPStatus
from urllib.parse import unquote

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from emulator.clock import monotonic
from emulator.errors import EngineError, ServiceError
from emulator.observability.logs import log_request
from emulator.observability.request_context import request_id
from emulator.observability.unrouted import unrouted_entry
from emulator.realtime.connection import Connection, Peer, PeerFactory
from emulator.refusals import storage_failed
from emulator.wire.json_codec import error_body

_log = logging.getLogger("emulator.socket")


class Handshake:
    """One upgrade request, from its arrival to its response."""

    def __init__(self, request: Request, factory: PeerFactory) -> None:
        self._factory = factory
        self._started = monotonic()
        path, _, self._query = request.path.partition("?")
        self._path = unquote(path)
        self.headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.raw_items()]
        self.id = request_id(dict(self.headers))

    async def open_peer(self, connection: Connection) -> Peer:
        """Return the peer of the connection. Raises `ServiceError`."""
        try:
            return await self._factory.open_peer(self._path, self._query, connection)
        except EngineError as error:
            _log.error("storage failed in opening %s: %s", self._path[:100], error)
            raise storage_failed() from None

    def refusal(self, error: ServiceError) -> Response:
        """Return the response that refuses the handshake, and closes the connection."""
        body = error_body(error)
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
        headers["X-Request-Id"] = self.id
        headers["X-Content-Type-Options"] = "nosniff"
        if error.retry_after is not None:
            headers["Retry-After"] = str(error.retry_after)
        return Response(error.status, error.title, headers, body)

    def record(
        self, response: Response, error: ServiceError | None = None, *, socket: int = 0, fault: str = ""
    ) -> None:
        """Add the response to the journal. Log it if it refuses: of an accepted handshake, the requests are logged.

        `socket` is the number of the peer; 0 without one. `fault` is the header that names the faults which acted.
        """
        status, body, seconds = response.status_code, bytes(response.body or b""), monotonic() - self._started
        if status != HTTPStatus.SWITCHING_PROTOCOLS:
            log_request({"action": "socket handshake"}, status, seconds, len(body), None)
        self._factory.record(
            self._path,
            partial(
                unrouted_entry,
                id=self.id,
                method="GET",
                query=self._query.encode(),
                status=status,
                seconds=seconds,
                answer=body,
                error=error,
                socket=socket,
                fault=fault,
            ),
        )
