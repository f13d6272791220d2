"""The page that shows the OpenAPI document. All of it comes from this service, and it may do nothing else."""

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
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What a browser is told of everything under `/schema`. Styles may be inline, as the viewer gives its parts some."""
_BEGIN: Final = "viewer.js"
VIEWER_FILES: Final = {
    "swagger_bundle.js": "text/javascript",
    "swagger_preset.js": "text/javascript",
    "swagger_style.css": "text/css",
    _BEGIN: "text/javascript",
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
    """The page, at `/schema` and at the path given."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The same for every service: the script asks for the document."""
        return _PAGE


def viewer_files() -> list[HTTPRouteHandler]:
    """Routes for the viewer's scripts and style; the `offapi` distribution carries all but the one that begins."""
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
    if name == _BEGIN:
        return _SCRIPT
    # Found without importing it: the package reads all of its nine megabytes when imported.
    spec = importlib.util.find_spec("offapi")
    assert spec is not None
    assert spec.origin is not None, "offapi is a dependency of this distribution"
    return (Path(spec.origin).parent / name).read_bytes()
