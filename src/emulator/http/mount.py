"""The Litestar application: it mounts the service, which finds the endpoint of each request itself.

Middleware around it logs accesses, and corrects the paths and addresses that proxies change.

Litestar's own routes bind and check what published clients do not send: they send JSON as a form, and GET with a body.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol
from urllib.parse import unquote

from litestar import Litestar, Request, Response, asgi
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from emulator.core.clock import monotonic
from emulator.core.errors import ServiceError, internal_error
from emulator.core.limits import parse_address
from emulator.core.observability.entries import Unrouted
from emulator.core.observability.logs import LONGEST_PATH, log_request
from emulator.core.observability.request_context import bind_context, scope_context
from emulator.http.refusals import invalid_request
from emulator.http.response import error_reply

_log = logging.getLogger("emulator")


def mount(app: Application, outermost: ASGIApp) -> Litestar:
    """Return the application for an ASGI server. `outermost` is middleware around `app`, which sees all requests."""

    @asgi("/", is_mount=True, copy_scope=True)
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        scope["path"] = unquote(scope["raw_path"].decode("ascii"))  # Litestar appends a slash
        await outermost(scope, receive, send)

    def respond(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        """Respond to a request that Litestar rejects, for its header `Host`, and to a defect."""
        path = request.scope["path"]
        if isinstance(error, HTTPException) and error.status_code < 500:
            failure = invalid_request(problem=error.detail)
        else:
            _log.error("unexpected failure in %s %s", request.method, path[:100], exc_info=error)
            failure = internal_error()
        reply = error_reply(failure, cors=path.startswith("/v1/"))
        context = scope_context(request.scope)
        app.record(Unrouted(context, request.method, path, reply.status, reply.content, failure))
        return Response(reply.content, status_code=reply.status, headers=reply.headers_by_name)

    return Litestar([serve], exception_handlers={Exception: respond}, openapi_config=None, logging_config=None)


class Application(Protocol):
    """An application that serves HTTP by ASGI, and notes what the server refuses before that."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def count_refusal(self, error: ServiceError) -> None:
        """Count an error response that no endpoint made."""

    def record(self, request: Unrouted) -> None:
        """Record such a response in the journal of the path's namespace."""


class AccessLog:
    """Logs each request once its response is complete."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        started = monotonic()
        status = size = 0

        async def send_and_count(message: Any) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += 0 if request["method"] == "HEAD" else len(message.get("body", b""))
            await send(message)

        request: Any = scope
        context = bind_context(request)
        try:
            await self._app(scope, receive, send_and_count)
        finally:
            fields = {"method": request["method"], "path": request["path"][:LONGEST_PATH]}
            log_request(fields, status or 500, monotonic() - started, size, context.caller)


def root_stripper(root_path: str) -> Callable[[bytes], bytes] | None:
    """Return what strips the root path from the target of a request; `None` if there is none.

    A proxy may have stripped it already. Scheme and host may precede it.
    """
    if not root_path:
        return None
    start = rb"\A(\w+://[^/?]*)?" + re.escape(root_path.encode())
    return partial(re.compile(start + rb"(?:/|(?=\?)|\Z)").sub, rb"\1/")


class ForwardedHeaders:
    """Takes a client's address from `X-Forwarded-For` of trusted proxies, if it is an IP address, and the scheme of its
    URL from `X-Forwarded-Proto`, if it is http or https.
    """

    def __init__(self, proxies: tuple[str, ...]) -> None:
        self._apply_headers = ProxyHeadersMiddleware(_do_nothing, list(proxies))

    def apply(self, scope: Any) -> None:
        """Replace the client, and the scheme, in the scope of a request that a proxy has forwarded."""
        connected, scheme = scope["client"], scope["scheme"]
        with suppress(StopIteration):  # at its first step: it waits for nothing
            self._apply_headers(scope, _do_nothing, _do_nothing).send(None)
        client = scope["client"]
        if client and (parse_address(client[0]) is None or "%" in client[0]):  # an IPv6 zone may be any text
            scope["client"] = connected
        if scope["scheme"] not in ("http", "https"):  # it may also be ws or wss
            scope["scheme"] = scheme


async def _do_nothing(*_: object) -> Any:
    """Do nothing: uvicorn's middleware is only used to edit the scope."""
