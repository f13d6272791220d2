"""Handles hot endpoints from the HTTP protocol, without an ASGI cycle.

The handler starts as soon as its request has arrived. A request that is unusual in any way is served through ASGI; both
ways call the same method of the dispatcher.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from emulator.core.faults import REQUEST
from emulator.core.observability.request_context import REQUEST_ID, current_request
from emulator.core.wire.url import SERVICE
from emulator.http.dispatch import Dispatcher
from emulator.http.request import Request
from emulator.http.response import Reply

_log = logging.getLogger("emulator")
_PLAIN_QUERY = re.compile(rb"[!-\"$-~]*")
"""Visible ASCII characters except `#`: all URL parsers agree about them."""

HOT_ENDPOINTS = frozenset(
    {
        ("GET", f"{SERVICE}vote"),
        ("POST", f"{SERVICE}vote"),
        ("POST", f"{SERVICE}rank"),
        ("POST", f"{SERVICE}accumulate"),
        ("GET", f"{SERVICE}channel_state"),
        ("PATCH", f"{SERVICE}channel_state"),
    }
)
"""Endpoints under the highest load.

Over ASGI, each has byte-identical replies, and takes 1.4 times the instructions (`benchmarks/guard.py`).
"""
Responder = Callable[[Request], Coroutine[Any, Any, Reply]]
"""Answers a request; every error becomes a reply."""


class HotPath:
    """Handles the hot endpoints of one service, for requests that have arrived whole."""

    def __init__(self, dispatcher: Dispatcher, hot: frozenset[tuple[str, str]] = HOT_ENDPOINTS) -> None:
        self.max_body = dispatcher.limits.body
        """The size of the largest body, in bytes."""
        self._faults = dispatcher.faults
        self._endpoints = {
            (method.encode(), path.encode()): partial(dispatcher.answer, dispatcher.table.endpoints[method, path])
            for method, path in hot
        }

    def find(self, method: bytes, path: bytes) -> Responder | None:
        """Return the fast handler for this method and path of a request; `None` if there is none.

        There is none while a fault may act on requests, because only requests over ASGI apply faults.
        """
        return None if REQUEST in self._faults.kinds else self._endpoints.get((method, path))


class Exchange:
    """A request on the hot path and its response. uvicorn sees it as its own request-response cycle."""

    __slots__ = (
        "_answer", "_connection", "_task",
        "disconnected", "keep_alive", "request", "response_complete", "scope",
    )  # fmt: skip

    message_event: Final = asyncio.Event()
    """uvicorn sets it to wake an ASGI application. Nothing waits for it here."""
    response_started: Final = False
    """Whether a part of the response was sent; it is always sent whole."""

    def __init__(self, connection: HttpToolsProtocol, answer: Responder, request: Request, scope: object) -> None:
        self._connection = connection
        self._answer = answer
        self.request = request
        self.scope = scope
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False
        self._task: asyncio.Task[None]

    def begin(self) -> None:
        """Run the handler, now that the body is complete."""
        self.request.size = len(self.request.raw)
        if sys.version_info >= (3, 12):  # it starts at once
            self._task = asyncio.Task(self._run(), loop=self._connection.loop, eager_start=True)
        else:
            self._task = self._connection.loop.create_task(self._run())

    async def _run(self) -> None:
        current_request.set(self.request.context)
        try:
            self._respond(await self._answer(self.request))
        except Exception:  # even from `_respond`: the call may have had its effect, so no other response would be true
            _log.exception("unexpected failure in the hot path")
            self._connection.transport.close()

    def _respond(self, reply: Reply) -> None:
        self.response_complete = True
        connection = self._connection
        transport = connection.transport
        if transport.is_closing():
            return
        body = reply.body
        assert isinstance(body, bytes), "a hot endpoint does not stream its response"
        start, rest = _response_heads.constant_parts(connection.server_state.default_headers, reply)
        end = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        context = self.request.context
        own = _header_lines(context.sandbox_headers(0))
        transport.write(b"%b%b\r\n%b%b%d\r\n%b%b" % (start, context.id.encode(), own, rest, len(body), end, body))
        if not self.keep_alive:
            transport.close()
        connection.on_response_complete()


class _ResponseHeads:
    """The constant parts of responses' heads. They change with the date header, once a second."""

    def __init__(self) -> None:
        self._default: Sequence[tuple[bytes, bytes]] = ()
        self._response_heads: dict[tuple[int, bytes, bool], tuple[bytes, bytes]] = {}
        """By status, type of content, and whether pages may read the response."""

    def constant_parts(self, default: Sequence[tuple[bytes, bytes]], reply: Reply) -> tuple[bytes, bytes]:
        """Return the constant parts of a response's head: before the request id, and before the content length."""
        if default is not self._default:
            self._default, self._response_heads = default, {}
        kind = (reply.status, reply.content_type, reply.cors)
        head = None if reply.more else self._response_heads.get(kind)  # heads with more headers may be too many
        if head is None:
            start = STATUS_LINE[reply.status] + _header_lines(default) + REQUEST_ID + b": "
            head = start, _header_lines(reply.headers) + b"content-length: "
            if not reply.more:
                self._response_heads[kind] = head
        return head


_response_heads = _ResponseHeads()


def _header_lines(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def may_take_hot_path(headers: Mapping[bytes, bytes], query: bytes, max_body: int) -> bool:
    """Whether a request with these headers and query may take the hot path.

    An unusual header or parameter prevents it.
    """
    length = headers.get(b"content-length", b"0")
    return (
        length.isdigit()
        and len(length) < 10
        and int(length) <= max_body
        and b"transfer-encoding" not in headers
        and b"upgrade" not in headers
        and b"expect" not in headers
        and _PLAIN_QUERY.fullmatch(query) is not None
    )
