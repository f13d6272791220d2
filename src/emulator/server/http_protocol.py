"""HTTP on the wire is uvicorn's, with limits to how much may come before a body, and to how long anything may take."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emulator.errors import BadRequest, HeadTooLarge, RequestTimeout, ServiceError
from emulator.observability.access_log import LONGEST_PATH, log_request
from emulator.observability.request_context import (
    REQUEST_ID,
    RequestContext,
    attach_context,
    bound_to,
    context_of,
    request_id,
)
from emulator.wire.coalescing_transport import CoalescingTransport, flush_batch_of
from emulator.wire.errors import error_body

LARGEST_HEAD = 64 * 1024
"""Bytes of a request line with its headers. uvicorn sets no limit, and copies a header anew with every piece of it."""


SLOWEST: Final = 1024
"""Bytes a second by which a request may take longer than it otherwise would."""
_LOOK_EVERY: Final = 1.0

_log = logging.getLogger("emulator")
# uvicorn's word on what is no HTTP comes before anybody knows the id that will be answered; ours names it.
logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != "Invalid HTTP request received.")


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP on a transport that gathers, with limits."""

    _in_head = True
    _head = 0
    _ended = False
    _since: float | None = None
    """When what is still incomplete began to come, in seconds of the event loop; `None` between two requests."""
    _came = 0
    """Bytes of it so far."""
    _untaken_since: float | None = None
    """Since when the other side takes nothing of what it is answered."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection."""
        # uvloop's transports do all that asyncio's do without being their subclasses.
        super().connection_made(CoalescingTransport(cast("asyncio.Transport", transport), flush_batch_of(self.loop)))
        self._since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self.transport.is_closing():
            return
        self._ended = False
        if self._since is None:
            self._since = self.loop.time()
        self._came += len(data)
        super().data_received(data)
        if self._in_head and not self._ended:  # a head that begins behind an end is counted from the next piece on
            self._head += len(data)
            if self._head > LARGEST_HEAD and not self.transport.is_closing():
                self._refuse(HeadTooLarge("Headers too large", f"headers: at most {LARGEST_HEAD} bytes are taken"))

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._in_head = False
        context = RequestContext(request_id(self.headers))
        attach_context(self.scope["state"], context)
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.scope is self.scope:  # else it is to become a WebSocket
            self.cycle.default_headers = [*self.cycle.default_headers, (REQUEST_ID, context.id.encode())]

    def on_message_complete(self) -> None:
        """The next request begins."""
        super().on_message_complete()
        self._in_head, self._head, self._ended = True, 0, True
        self._since, self._came = None, 0

    def pause_writing(self) -> None:
        """The other side does not keep up."""
        self._untaken_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._untaken_since = None
        super().resume_writing()

    def cut_if_overdue(self, timeout: float) -> None:
        """End a connection on which a request comes, or an answer is taken, too slowly.

        A request has `timeout` seconds, and one more for each `SLOWEST` bytes of it; of an answer something has to be
        taken within `timeout` seconds.
        """
        now = self.loop.time()
        if self._untaken_since is not None and now - self._untaken_since > timeout:
            self.transport.abort()
        elif self._since is None:
            return
        elif self.flow.read_paused:  # it is we who do not keep up
            self._since, self._came = now, 0
        elif now - self._since > timeout + self._came / SLOWEST:
            if self._came and (self.cycle is None or self.cycle.response_complete or not self.cycle.response_started):
                detail = f"the request did not arrive within {timeout:g} seconds"
                self._refuse(RequestTimeout("Request timeout", detail))
            else:
                self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP like any other refusal (ruling W4), and hang up."""
        self._refuse(BadRequest("Bad Request", "this cannot be read as an HTTP request"))

    @property
    def _knows_request(self) -> bool:
        """Whether the scope is that of the request that comes now, and not of the one before it."""
        return self.headers is not None and not (self._in_head and self._is_of_cycle)

    @property
    def _is_of_cycle(self) -> bool:
        return self.cycle is not None and self.cycle.scope is self.scope

    @property
    def _is_under_way(self) -> bool:
        """Whether the application has been given the request that comes now."""
        return not self._in_head and self._is_of_cycle and all(self.cycle is not waits for waits, _ in self.pipeline)

    def _refuse(self, error: ServiceError) -> None:
        """Answer the request that comes now, whose line and count say the same, and hang up."""
        body = error_body(error)
        if self._is_under_way:
            if self.cycle.response_started:  # one request has one answer
                self.transport.close()
                return
            context = context_of(self.scope)
            context.early_error = error  # the application will say so
        else:
            brought = self.headers if self._knows_request else ()
            context = RequestContext(request_id(brought)) if self._in_head else context_of(self.scope)
            self._note(context, error, len(body))
        head = (
            f"HTTP/1.1 {error.status} {error.title}\r\n"
            "content-type: application/json\r\naccess-control-allow-origin: *\r\n"
            f"x-request-id: {context.id}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _note(self, context: RequestContext, error: ServiceError, size: int) -> None:
        """Count and log what the application never hears of."""
        app: Any = self.config.app
        app.refused(error)
        method = self.scope.get("method", "") if self._knows_request else ""
        path = self.url.partition(b"?")[0].decode("latin-1") if self._knows_request else ""
        took = 0.0 if self._since is None else self.loop.time() - self._since
        with bound_to(context):
            if isinstance(error, BadRequest):
                _log.warning("what came is no HTTP request")
            log_request({"method": method, "path": path[:LONGEST_PATH]}, error.status, took, size, None)


async def cut_overdue(connections: Iterable[object], timeout: float) -> None:
    """Look at all connections once a second, for ever: a timer for each request would cost each request something."""
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        for each in list(connections):
            if isinstance(each, Protocol):
                each.cut_if_overdue(timeout)
