"""The page that shows the OpenAPI document, with every file served locally under a strict CSP."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Final

from litestar import Request, get
from litestar.datastructures import CacheControlHeader
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.response import Response

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
"""Headers of everything under `/schema`. Inline styles are allowed because the viewer uses them."""
_STARTUP_SCRIPT: Final = "viewer.js"
VIEWER_FILES: Final = {
    "swagger_bundle.js": "text/javascript",
    "swagger_preset.js": "text/javascript",
    "swagger_style.css": "text/css",
    _STARTUP_SCRIPT: "text/javascript",
}
_PAGE: Final = b"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Extension backend</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/schema/swagger_style.css">
</head>
<body>
<div id="viewer"></div>
<script src="/schema/swagger_bundle.js"></script>
<script src="/schema/swagger_preset.js"></script>
<script src="/schema/viewer.js"></script>
</body>
</html>
"""
_SCRIPT: Final = b"""SwaggerUIBundle({
  url: "/schema/openapi.json",
  dom_id: "#viewer",
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
});
"""


class DocsPage(OpenAPIRenderPlugin):
    """Serves the page at `/schema` and at the given path."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Return the static page; its script fetches the document."""
        return _PAGE


def viewer_files() -> list[HTTPRouteHandler]:
    """Routes for the viewer's scripts and style sheet; all but the startup script come from the `offapi` package."""
    return [_file(name, content_type) for name, content_type in VIEWER_FILES.items()]


def _file(name: str, content_type: str) -> HTTPRouteHandler:
    @get(
        f"/schema/{name}",
        include_in_schema=False,
        sync_to_thread=False,
        name=name,
        cache_control=CacheControlHeader(max_age=3600),
        response_headers=HEADERS,
    )
    def read_viewer_file() -> Response[bytes]:
        return Response(_viewer_file(name), media_type=content_type)

    return read_viewer_file


@cache
def _viewer_file(name: str) -> bytes:
    if name == _STARTUP_SCRIPT:
        return _SCRIPT
    # Located without importing it: the import would read all nine megabytes.
    spec = importlib.util.find_spec("offapi")
    assert spec is not None
    assert spec.origin is not None, "offapi is a dependency of this distribution"
    return (Path(spec.origin).parent / name).read_bytes()
