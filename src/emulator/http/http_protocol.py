"""uvicorn's HTTP protocol with request ids, a limit on headers and a timeout for slow clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import Any, Final, cast
from weakref import ref

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emulator.errors import BadRequest, ServiceError
from emulator.http.faulty_requests import CYCLE
from emulator.http.front import HotPath
from emulator.http.hot_path import Exchange, is_plain
from emulator.http.refusals import duplicate_header, head_too_large, invalid_request, request_timeout, too_many_headers
from emulator.http.request import Request
from emulator.observability.entries import unrouted_entry
from emulator.observability.logs import LONGEST_PATH, log_request
from emulator.observability.request_context import (
    CONTEXT,
    REQUEST_ID,
    RequestContext,
    bound_to,
    context_of,
    request_id,
)
from emulator.wire.coalescing_transport import LONG_PIECE, SHORT_PIECE, CoalescingTransport, flush_batch_of
from emulator.wire.json_codec import error_body

MAX_HEAD = 64 * 1024
"""Bytes of a request line with its headers. uvicorn has no limit, and copies a header again for each piece of it."""
MAX_HEADERS: Final = 100
"""Headers of a request."""
SECURITY_HEADERS: Final = (("X-Content-Type-Options", "nosniff"),)
"""Headers of every response. A browser would otherwise guess that a text is a page or a script."""
MIN_BYTE_RATE: Final = 1024
"""Bytes per second. A request has one more second to arrive per this many bytes."""
_SINGLE: Final = (b"authorization", b"host")
"""Headers that may occur once: a proxy may have checked one of two, and the service would use the other."""
_CHECK_INTERVAL: Final = 1.0
_MAX_PIPELINED: Final = 16
"""Pipelined requests of a connection that wait while it reads on."""
_SECURITY_LINES: Final = "".join(f"{name.lower()}: {value}\r\n" for name, value in SECURITY_HEADERS)

_log = logging.getLogger("emulator")
# uvicorn logs invalid HTTP without the request id; `_refuse` logs it with the id.
logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != "Invalid HTTP request received.")


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with coalesced writes and limits."""

    _in_head = True
    _head_size = 0
    _complete = False
    """Whether the data just parsed ended with a complete request."""
    _trailer_size: int | None = None
    """Bytes since the latest chunk header, while they may be trailers of a chunked body."""
    _invalid: ServiceError | None = None
    """What is wrong with the complete headers."""
    _since: float | None = None
    """When the incomplete request began to arrive, in the loop's seconds; `None` between requests."""
    _received = 0
    """Bytes of the incomplete request."""
    _idle_since = 0.0
    """When the last response was complete, in the loop's seconds."""
    _exchange: Exchange | None = None
    """The arriving request, if it takes the hot path."""
    _refusal: bytes | None = None
    """The error that ends the connection, while earlier requests are not answered yet. No more data is parsed."""
    _write_paused_since: float | None = None
    """Since when the client has stopped reading, in the loop's seconds."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wrap the transport so that small writes are coalesced and long reads divided."""
        # uvloop's transports are not subclasses of asyncio's, but implement the same methods.
        self._pieces = CoalescingTransport(cast("asyncio.Transport", transport), flush_batch_of(self.loop))
        super().connection_made(self._pieces)
        app: Any = self.config.app
        self._hot_path: HotPath | None = app.hot_path
        self._since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes in pieces."""
        self._pieces.hand_over(data, self.piece_received, SHORT_PIECE if self._in_head else LONG_PIECE)

    def piece_received(self, data: bytes) -> None:
        """Parse a chunk of received bytes; refuse headers above `MAX_HEAD`."""
        if self._refusal is not None or self.transport.is_closing():
            return
        self._complete = False
        if self._since is None:
            self._since = self.loop.time()
        self._received += len(data)
        super().data_received(data)
        if self._in_head and not self._complete:  # a head after a complete request counts from its next piece on
            self._head_size += len(data)
            if self._head_size > MAX_HEAD and not self.transport.is_closing():
                self._refuse(head_too_large(part="headers", limit=MAX_HEAD))
        elif self._trailer_size is not None:
            self._trailer_size += len(data)
            if self._trailer_size > MAX_HEAD and not self.transport.is_closing():
                self._refuse(head_too_large(part="trailers", limit=MAX_HEAD))

    def on_headers_complete(self) -> None:
        """Check the headers, and give the request an id, which its response carries."""
        self._in_head = False
        headers = dict(self.headers)
        context = RequestContext(request_id(headers), headers=headers)
        self.scope["state"][CONTEXT] = context
        if len(headers) != len(self.headers) or len(headers) > MAX_HEADERS:
            self._check(self.headers)
        self._exchange = self._hot_exchange(headers, context)
        if self._exchange is not None:
            self.cycle = cast("Any", self._exchange)
            return
        super().on_headers_complete()
        if self._cycle_is_current:  # otherwise a WebSocket handshake
            self.scope["state"][CYCLE] = ref(self.cycle)  # which has the scope: the two must not form a circle
            self.cycle.default_headers = [*self.cycle.default_headers, (REQUEST_ID, context.id.encode())]

    def _hot_exchange(self, headers: dict[bytes, bytes], context: RequestContext) -> Exchange | None:
        """Return an exchange on the hot path, if the request may take it."""
        hot_path, method = self._hot_path, self.parser.get_method()
        path, _, query = self.url.partition(b"?")
        if (
            hot_path is None
            or (answer := hot_path.find(method, path)) is None
            or not is_plain(headers, query, hot_path.max_body)
            or not self.parser.should_keep_alive()  # never true of HTTP/1.0 without the header
            or (b"connection" in headers and self.parser.get_http_version() != "1.1")
            or not (self.cycle is None or self.cycle.response_complete)  # pipelined responses must keep their order
            or self.flow.write_paused
        ):
            return None
        peer = self.client[0] if self.client else ""
        return Exchange(self, answer, Request(context, headers, query, peer), self.scope)

    def on_chunk_header(self) -> None:
        """Expect a chunk or, after the last, trailers, which must not change the headers."""
        self._trailer_size = 0
        self.scope["headers"] = self.headers.copy()

    def on_body(self, body: bytes) -> None:
        self._trailer_size = None
        if self._exchange is not None:
            self._exchange.request.raw += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Reset the counters for the next request, and start one on the hot path."""
        if self._exchange is None:
            super().on_message_complete()
        self._in_head, self._head_size, self._complete = True, 0, True
        self._since, self._received, self._trailer_size = None, 0, None
        if self._exchange is not None:
            self._exchange.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the reference to the latest request, which refers to this connection, so that both are freed at once."""
        super().connection_lost(exc)
        self.cycle = self._exchange = cast("Any", None)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a WebSocket, and drop the parser, which refers to this protocol.

        Neither is used again.
        """
        super().handle_websocket_upgrade()
        self.parser = cast("Any", None)

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or wait for one.

        Stops reading while many pipelined requests wait; uvicorn would keep any number. `close_if_overdue`
        closes idle connections; uvicorn would set a timer after each response.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._idle_since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._refusal is not None:
            self.transport.write(self._refusal)
            self.transport.close()
        if len(self.pipeline) > _MAX_PIPELINED:
            self.flow.pause_reading()

    def pause_writing(self) -> None:
        self._write_paused_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._write_paused_since = None
        super().resume_writing()

    def close_if_overdue(self, timeout: float) -> None:
        """Close the connection if the client sends its request or reads its response too slowly.

        A request has `timeout` seconds, plus one per `MIN_BYTE_RATE` bytes; a client may stop reading for `timeout`
        seconds; 0 means no limit. A connection without a request is closed after uvicorn's `timeout_keep_alive`.
        """
        now = self.loop.time()
        if self._since is None and self.cycle is not None and self.cycle.response_complete and not self.pipeline:
            if now - self._idle_since > self.timeout_keep_alive:
                self.transport.close()
        elif not timeout:
            return
        elif self._write_paused_since is not None and now - self._write_paused_since > timeout:
            self.transport.abort()
        elif self._since is None:
            return
        elif self.flow.read_paused:  # the server is the slow side
            self._since, self._received = now, 0
        elif now - self._since > timeout + self._received / MIN_BYTE_RATE:
            responding = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
            if self._received and not responding:
                self._refuse(request_timeout(seconds=f"{timeout:g}"))
            else:
                self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Respond to invalid HTTP with the service's error body (ruling W4), and close."""
        self._refuse(self._invalid or invalid_request(problem="invalid HTTP request"))

    def _check(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Refuse too many headers, and a repeated header that must be unique. Raises, which stops the parser."""
        if len(headers) > MAX_HEADERS:
            self._invalid = too_many_headers(count=len(headers), limit=MAX_HEADERS)
        for single in _SINGLE:
            if sum(name == single for name, _ in headers) > 1:
                self._invalid = duplicate_header(header=single.decode())
        if self._invalid is not None:
            raise self._invalid

    @property
    def _knows_request(self) -> bool:
        """Whether the scope belongs to the arriving request, not to the one before it."""
        return self.headers is not None and not (self._in_head and self._cycle_is_current)

    @property
    def _cycle_is_current(self) -> bool:
        return self.cycle is not None and self.cycle.scope is self.scope

    @property
    def _is_in_application(self) -> bool:
        """Whether the application already handles the arriving request."""
        if self._exchange is not None:
            return False
        is_queued = any(self.cycle is queued for queued, _ in self.pipeline)
        return not self._in_head and self._cycle_is_current and not is_queued

    @property
    def _awaits_answers(self) -> bool:
        """Whether requests before the arriving one still wait for their responses."""
        is_arriving = not self._in_head and self._cycle_is_current
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete and not is_arriving)

    def _refuse(self, error: ServiceError) -> None:
        """Respond to the arriving request with an error, after earlier responses; log and count it once, and close."""
        body = error_body(error)
        if self._is_in_application:
            if self.cycle.response_started:  # a request has one response
                self.transport.close()
                return
            context = context_of(self.scope)
            context.early_error = error  # the application logs and counts it
        else:
            headers = self.headers if self._knows_request else ()
            context = RequestContext(request_id(dict(headers))) if self._in_head else context_of(self.scope)
            self._record(context, error, body)
        head = (
            f"HTTP/1.1 {error.status} {error.title}\r\n"
            "content-type: application/json\r\naccess-control-allow-origin: *\r\n"
            f"x-request-id: {context.id}\r\n{_SECURITY_LINES}"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        if self._awaits_answers:
            self._since = None
            self._refusal = head.encode() + body
            if not self._in_head and self._cycle_is_current:
                self.pipeline.popleft()  # the arriving request, which is incomplete
            return
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _record(self, context: RequestContext, error: ServiceError, body: bytes) -> None:
        """Count, log and note in the journal an error that the application does not see."""
        app: Any = self.config.app
        app.refused(error)
        target, _, query = self.url.partition(b"?") if self._knows_request else (b"", b"", b"")
        path = target.decode("latin-1")
        method = self.parser.get_method().decode("latin-1") if target else ""
        seconds = 0.0 if self._since is None else self.loop.time() - self._since
        with bound_to(context):
            if isinstance(error, BadRequest):
                _log.warning("invalid HTTP request")
            log_request({"method": method, "path": path[:LONGEST_PATH]}, error.status, seconds, len(body), None)
        entry = partial(
            unrouted_entry,
            id=context.id,
            method=method,
            query=query,
            status=error.status,
            seconds=seconds,
            answer=body,
            error=error,
        )
        app.record(path, entry)


async def close_overdue(connections: Iterable[object], timeout: float) -> None:
    """Close overdue connections, forever. Checking all once a second is cheaper than a timer for each request."""
    while True:
        await asyncio.sleep(_CHECK_INTERVAL)
        for connection in list(connections):
            if isinstance(connection, Protocol):
                connection.close_if_overdue(timeout)
