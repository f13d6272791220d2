"""uvicorn's HTTP protocol with request ids, a limit on headers and a timeout for slow clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast
from weakref import ref

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emulator.core.errors import BadRequest, ServiceError, TooManyRequests
from emulator.core.limits import OpenConnections, masked_address
from emulator.core.observability.entries import Unrouted
from emulator.core.observability.logs import LONGEST_PATH, log_request
from emulator.core.observability.request_context import (
    CONTEXT_KEY,
    REQUEST_ID,
    RequestContext,
    in_context,
    request_id,
    scope_context,
)
from emulator.core.wire.json_codec import error_body
from emulator.core.wire.transports import ShortReads, end_writing
from emulator.http.faulty_requests import CYCLE_KEY
from emulator.http.hot_path import Exchange, HotPath, may_take_hot_path
from emulator.http.mount import Application, ForwardedHeaders
from emulator.http.refusals import duplicate_header, head_too_large, invalid_request, request_timeout, too_many_headers
from emulator.http.request import Request

MAX_HEAD = 64 * 1024
"""Bytes of a request line with its headers. uvicorn has no limit, and copies a header again for each piece of it."""
MAX_HEADERS = 100
"""Headers of a request."""
SECURITY_HEADERS = (("X-Content-Type-Options", "nosniff"),)
"""Headers of every response. A browser would otherwise guess that a text is a page or a script."""
MIN_BYTE_RATE = 1024
"""Bytes per second. A request has one more second to arrive per this many bytes."""
_UNIQUE_HEADERS = (b"authorization", b"host")
"""Headers that may occur once: a proxy may have checked one of two, and the service would use the other."""
_REFUSAL_READ_TIME = 2.0
"""Seconds that a client has to end its request after a refusal."""
_TLS_END_TIMEOUT = 0.5
"""Seconds that an idle client has to answer the end of TLS when the server stops. Many do not answer."""
_MAPPED_IPV4 = "::ffff:"
_MAX_PIPELINED = 16
"""Pipelined requests of a connection that wait while it reads on."""
_SECURITY_LINES = "".join(f"{name.lower()}: {value}\r\n" for name, value in SECURITY_HEADERS)

_log = logging.getLogger("emulator")


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits."""

    _in_head = True
    _head_size: int | None = 0
    """Bytes of the head, or since the latest chunk or its header, while they may be trailers; `None` in a body."""
    _complete = False
    """Whether the data just parsed ended with a complete request."""
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
    """The error that ends the connection, once earlier requests are answered. No more data is parsed."""
    _write_paused_since: float | None = None
    """Since when the client has stopped reading, in the loop's seconds."""

    def __init__(
        self,
        application: Application,
        hot_path: HotPath | None,
        open_connections: OpenConnections,
        forwarding: ForwardedHeaders | None,
        strip_root: Callable[[bytes], bytes] | None,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._application = application
        self._hot_path = hot_path
        self._open = open_connections
        self._forwarding = forwarding
        self._strip_root = strip_root

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Find the application and the client's address; refuse the connection if there are too many."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._since = self.loop.time()
        if self.client is not None:  # a listener for both families writes IPv4 as IPv6
            self.client = self.client[0].removeprefix(_MAPPED_IPV4), self.client[1]
        address = self.client[0] if self.client else ""
        try:
            self._open.add(self, address, self.transport.get_extra_info("socket").fileno())
        except TooManyRequests as error:
            _log.warning("refused a connection from %s: %s", masked_address(address), error.detail)
            self._refuse(error)
            self.transport.close()  # there are too many to wait for their ends

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; refuse headers above `MAX_HEAD`."""
        if self._refusal is not None or self.transport.is_closing():
            return
        self._complete = False
        if self._since is None:
            self._since = self.loop.time()
        self._received += len(data)
        rest = data
        while rest:
            try:
                self.parser.feed_data(rest)
                break
            except HttpParserError:
                self._refuse(self._invalid or invalid_request(problem="invalid HTTP request"))  # ruling W4
                break
            except HttpParserUpgrade as upgrade:
                rest = self._switch_protocols(rest[upgrade.args[0] :])
        if self._head_size is not None and not self._complete:  # what follows a request counts from its next read on
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(head_too_large(part="headers" if self._in_head else "trailers", limit=MAX_HEAD))

    def on_headers_complete(self) -> None:
        """Check the headers, and give the request an id, which its response carries."""
        self._in_head = False
        if self._strip_root is not None:
            self.url = self._strip_root(self.url)
        headers = dict(self.headers)
        context = RequestContext(request_id(headers), headers=headers)
        self.scope["state"][CONTEXT_KEY] = context
        if self._forwarding is not None:
            self._forwarding.apply(self.scope)
        if len(headers) != len(self.headers) or len(headers) > MAX_HEADERS or (self._head_size or 0) > MAX_HEAD // 2:
            self._check_headers(self.headers)
        self._head_size = 0 if b"transfer-encoding" in headers else None
        self._exchange = self._hot_exchange(headers, context)
        if self._exchange is not None:
            self.cycle = cast("Any", self._exchange)
            return
        if self.parser.should_upgrade():
            self._check_upgrade(headers)
            return
        super().on_headers_complete()
        self.scope["state"][CYCLE_KEY] = ref(self.cycle)  # which has the scope: the two must not form a circle
        self.cycle.default_headers = [*self.cycle.default_headers, (REQUEST_ID, context.id.encode())]

    def _hot_exchange(self, headers: dict[bytes, bytes], context: RequestContext) -> Exchange | None:
        """Return an exchange on the hot path, if the request may take it."""
        hot_path, method = self._hot_path, self.parser.get_method()
        path, _, query = self.url.partition(b"?")
        if (
            hot_path is None
            or (answer := hot_path.find(method, path)) is None
            or not may_take_hot_path(headers, query, hot_path.max_body)
            or not self.parser.should_keep_alive()  # never true of HTTP/1.0 without the header
            or (b"connection" in headers and self.parser.get_http_version() != "1.1")
            or not (self.cycle is None or self.cycle.response_complete)  # pipelined responses must keep their order
            or self.flow.write_paused
        ):
            return None
        return Exchange(self, answer, Request(context, headers, query, self._peer_address), self.scope)

    def on_chunk_header(self) -> None:
        """Expect a chunk or, after the last, trailers, which must not change the headers."""
        self._head_size = 0
        self.scope["headers"] = self.headers.copy()

    def on_chunk_complete(self) -> None:
        """Expect the header of the next chunk."""
        self._head_size = 0

    def on_body(self, body: bytes) -> None:
        self._head_size = None
        if self._exchange is not None:
            self._exchange.request.raw += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Reset the counters for the next request, and start one on the hot path."""
        if self._exchange is None:
            if self.parser.should_upgrade():  # `_switch_protocols` follows
                return
            super().on_message_complete()
            if not self.parser.should_keep_alive():  # a trailer may say so too; the parser reads no further request
                self.cycle.keep_alive = False
        self._in_head, self._head_size, self._complete = True, 0, True
        self._since, self._received = None, 0
        if self._exchange is not None:
            self._exchange.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the reference to the latest request, which refers to this connection, so that both are freed at once."""
        super().connection_lost(exc)
        self._open.remove(self)
        self.cycle = self._exchange = cast("Any", None)

    def _should_upgrade(self) -> bool:
        """Whether a request with `Upgrade` is a WebSocket handshake. Any other `Upgrade` is ignored."""
        upgrades = [value.strip().lower() for name, value in self.headers if name == b"upgrade"]
        return upgrades == [b"websocket"] and self.scope["method"] == "GET" and self.scope["http_version"] == "1.1"

    def _check_upgrade(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a tunnel, and a handshake with a body or behind requests without a response. Raises."""
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = self.parser.get_http_version()
        if self.scope["method"] == "CONNECT":
            problem = "CONNECT is not supported"
        elif not self._should_upgrade():
            return
        elif headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            problem = "a WebSocket handshake has no body"
        elif self._awaits_answers:
            problem = "a WebSocket handshake must wait for the responses to earlier requests"
        else:
            return
        self._invalid = invalid_request(problem=problem)
        raise self._invalid

    def _switch_protocols(self, rest: bytes) -> bytes:
        """Hand the connection over to a WebSocket, or return what is to be parsed: the request without `Upgrade`.

        httptools skips the body of each request with `Upgrade`. `rest` are the bytes after the headers.
        """
        if self._should_upgrade():
            self.handle_websocket_upgrade()
            socket: Any = self.transport.get_protocol()
            socket.address = self._peer_address
            self.transport.set_protocol(ShortReads(socket))
            self._open.remove(self)
            self.parser = cast("Any", None)  # it refers to this protocol; neither is used again
            return b""
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        start = b"%b %b HTTP/%b" % (self.scope["method"].encode(), self.url, self.scope["http_version"].encode())
        lines = [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join((start, *lines, b"", rest))

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
            self._send_refusal(self._refusal)
        if len(self.pipeline) > _MAX_PIPELINED:
            self.flow.pause_reading()

    def shutdown(self) -> None:
        """Close the connection, after a running request, because the server stops."""
        super().shutdown()
        if self.scheme == "https" and self.transport.is_closing():
            self.loop.call_later(_TLS_END_TIMEOUT, self.transport.abort)

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

    def _check_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Refuse too many or too long headers, and a repeated one that must be unique. Raises, so parsing stops."""
        if len(headers) > MAX_HEADERS:
            self._invalid = too_many_headers(count=len(headers), limit=MAX_HEADERS)
        elif len(self.url) + sum(len(name) + len(value) for name, value in headers) > MAX_HEAD:
            self._invalid = head_too_large(part="headers", limit=MAX_HEAD)
        for single in _UNIQUE_HEADERS:
            if sum(name == single for name, _ in headers) > 1:
                self._invalid = duplicate_header(header=single.decode())
        if self._invalid is not None:
            raise self._invalid

    @property
    def _peer_address(self) -> str:
        """The address of the client that sends the request; empty if unknown."""
        client = self.scope["client"]
        return client[0] if client else ""

    @property
    def _is_scope_current(self) -> bool:
        """Whether the scope belongs to the arriving request, not to the one before it."""
        return self.headers is not None and not (self._in_head and self._cycle_is_current)

    @property
    def _cycle_is_current(self) -> bool:
        return self.cycle is not None and self.cycle.scope is self.scope

    @property
    def _is_body_arriving(self) -> bool:
        """Whether the body of a request arrives, which has its cycle."""
        return not self._in_head and self._cycle_is_current

    @property
    def _awaits_answers(self) -> bool:
        """Whether requests before the arriving one still wait for their responses."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return bool(self.pipeline) or not (is_answered or self._is_body_arriving)

    def _refuse(self, error: ServiceError) -> None:
        """Respond to the arriving request with an error, after earlier responses; log and count it once, and close."""
        if self._refusal is not None or self.transport.is_closing():
            return
        body = error_body(error)
        is_queued = any(self.cycle is queued for queued, _ in self.pipeline)
        if self._is_body_arriving and self._exchange is None and not is_queued:  # the application already handles it
            if self.cycle.response_started:  # a request has one response
                self.transport.close()
                return
            context = scope_context(self.scope)
            context.early_error = error  # the application logs and counts it
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        else:
            headers = self.headers if self._is_scope_current else ()
            context = RequestContext(request_id(dict(headers))) if self._in_head else scope_context(self.scope)
            self._record_refusal(context, error, body)
        after = "" if error.retry_after is None else f"retry-after: {error.retry_after}\r\n"
        sent = b"" if self._is_scope_current and self.parser.get_method() == b"HEAD" else body
        head = (
            f"HTTP/1.1 {error.status} {error.title}\r\n"
            "content-type: application/json\r\naccess-control-allow-origin: *\r\n"
            "cross-origin-resource-policy: cross-origin\r\n"
            f"x-request-id: {context.id}\r\n{_SECURITY_LINES}{after}"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self._refusal = head.encode() + sent
        if self._awaits_answers:
            self._since = None
            if self._is_body_arriving:
                self.pipeline.popleft()  # the arriving request, which is incomplete
            return
        self._send_refusal(self._refusal)

    def _send_refusal(self, refusal: bytes) -> None:
        """Send the last response, and discard what still arrives."""
        self.transport.write(refusal)
        end_writing(self.transport)
        self.flow.resume_reading()
        self.loop.call_later(_REFUSAL_READ_TIME, self.transport.abort)

    def _record_refusal(self, context: RequestContext, error: ServiceError, body: bytes) -> None:
        """Count, log and note in the journal an error that the application does not see."""
        self._application.count_refusal(error)
        url = self.url if self._is_scope_current else b""
        if self._strip_root is not None:  # the headers may be incomplete
            url = self._strip_root(url)
        target, _, query = url.partition(b"?")
        path = target.decode("latin-1")
        method = self.parser.get_method().decode("latin-1") if target else ""
        seconds = 0.0 if self._since is None else self.loop.time() - self._since
        with in_context(context):
            if isinstance(error, BadRequest):
                _log.warning("invalid HTTP request")
            log_request({"method": method, "path": path[:LONGEST_PATH]}, error.status, seconds, len(body), None)
        self._application.record(Unrouted(context, method, path, error.status, body, error, query, seconds))
