"""The Litestar application: it mounts the service, which finds the endpoint of each request itself.

Litestar's own routes bind and check what published clients do not send: they send JSON as a form, and GET with a body.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import unquote

from litestar import Litestar, Request, Response, asgi
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from emulator.core.errors import internal_error
from emulator.core.observability.entries import Unrouted
from emulator.core.observability.request_context import context_of
from emulator.http.middleware import Application
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
        context = context_of(request.scope)
        app.record(Unrouted(context, request.method, path, reply.status, reply.content, failure))
        return Response(reply.content, status_code=reply.status, headers=reply.headers_by_name)

    return Litestar([serve], exception_handlers={Exception: respond}, openapi_config=None, logging_config=None)
