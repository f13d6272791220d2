"""The routes under `/schema`: the OpenAPI document, and a page that shows it, under a strict CSP."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any, Final

from litestar import MediaType, Request, get
from litestar.datastructures import CacheControlHeader
from litestar.handlers import HTTPRouteHandler
from litestar.response import Response

from emulator.web.dispatch import DISPATCHER, Dispatcher
from emulator.web.openapi import Document

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of all answers under `/schema`. Inline styles are allowed because the viewer uses them."""
_FOLDER: Final = Path(__file__).with_name("viewer")
VIEWER_FILES: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "viewer.js": "text/javascript",
}
"""The files of the viewer, by name, with their content types."""
_PAGE: Final = b"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Extension backend</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/schema/swagger-ui.css">
</head>
<body>
<div id="viewer"></div>
<script src="/schema/swagger-ui-bundle.js"></script>
<script src="/schema/viewer.js"></script>
</body>
</html>
"""


def schema_routes(document: Document) -> list[HTTPRouteHandler]:
    """Return the routes of the document, the page and its files."""

    @get("/schema/openapi.json", media_type=MediaType.JSON, response_headers=HEADERS)
    async def read_document(request: Request[Any, Any, Any]) -> bytes:
        dispatcher: Dispatcher = request.scope["state"][DISPATCHER]
        # The first call builds the document, which takes 150 to 250 ms. Other requests go on meanwhile.
        return await asyncio.to_thread(document.read, dispatcher.serves)

    return [read_document, _read_page, _read_file]


@get(["/schema", "/schema/docs"], media_type=MediaType.HTML, sync_to_thread=False, response_headers=HEADERS)
def _read_page() -> bytes:
    return _PAGE


@get(
    [f"/schema/{name}" for name in VIEWER_FILES],
    sync_to_thread=False,
    cache_control=CacheControlHeader(max_age=3600),
    response_headers=HEADERS,
)
def _read_file(request: Request[Any, Any, Any]) -> Response[bytes]:
    name = request.scope["path"].rpartition("/")[2]
    return Response(_viewer_file(name), media_type=VIEWER_FILES[name])


@cache
def _viewer_file(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()
