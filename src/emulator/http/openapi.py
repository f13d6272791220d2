"""The endpoints under `/schema`: the OpenAPI 3.1 document, made from the declared endpoints, and a page that shows it,
under a strict CSP."""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from emulator.contract.names import ALIASES
from emulator.core.settings import Limits
from emulator.core.wire.url import SERVICE
from emulator.http.dispatch import Dispatcher
from emulator.http.endpoint import UNDOCUMENTED, Audience, Call, Endpoint, endpoint
from emulator.http.response import HTML, JSON, Reply

_SCHEMA_REFERENCE = "#/components/schemas/{name}"
_SECURITY: dict[Audience, list[Any]] = {
    Audience.CLIENTS: [{"credential": []}],
    Audience.CLIENT_ID: [{"credential": []}, {}],
}
_SECURITY_SCHEMES = {
    "credential": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`<client id> <JWT>`, separated by a space",
    }
}
_ERROR_MEANINGS = {
    400: "The input is unreadable or breaks a rule.",
    401: "The credential is missing, malformed, expired or not yet valid.",
    403: "The role or stage is not allowed here.",
    413: "The body is over the limit.",
    429: "Too many requests, connections or attempts; retry after `Retry-After` seconds.",
    503: "Storage is unavailable; retry after `Retry-After` seconds.",
}


_PATH_PARTS = re.compile(r"\{(\w+)\}")


class ErrorEntry(msgspec.Struct):
    """One entry of `errors`."""

    status: int
    title: str
    detail: str


class ErrorAnswer(msgspec.Struct):
    """The body of every error; `info` repeats the details."""

    errors: list[ErrorEntry]
    reason: str
    info: str


def _describe_operation(endpoint: Endpoint) -> dict[str, Any]:
    summary, _, description = (endpoint.handler.__doc__ or endpoint.name).partition("\n")
    limit = getattr(Limits(), endpoint.limit)
    notes = [" ".join(description.split())]
    if endpoint.audience is Audience.CLIENTS:
        notes.append(f"Roles: {', '.join(sorted(endpoint.roles))}.")
    if names := sorted(alias for alias, name in ALIASES.items() if SERVICE + name == endpoint.path):
        notes.append(f"Also available at: {', '.join(f'`{SERVICE}{name}`' for name in names)}.")
    if endpoint.body is not None:
        notes.append(f"The body is parsed as JSON whatever its content type, up to {limit:,} bytes by default.")
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": summary.strip(),
        "description": "\n\n".join(filter(None, notes)),
        "tags": [endpoint.path.removeprefix(SERVICE) if endpoint.path.startswith(SERVICE) else "emulator"],
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
              for name in _PATH_PARTS.findall(endpoint.path)),
            *({"name": each.name, "in": "query", "required": False, "description": each.meaning,
             "schema": {"type": each.kind}}
              for each in endpoint.query),
        ],
        "responses": _describe_responses(endpoint),
        "security": _SECURITY.get(endpoint.audience, []),
    }  # fmt: skip
    if endpoint.body is not None:
        described["requestBody"] = {
            "required": endpoint.audience is not Audience.CLIENT_ID,
            "content": _json_content(endpoint.body),
        }
    return described


def _describe_responses(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.content_type is JSON:
        content = _json_content(endpoint.answer)
    else:
        content_type = endpoint.content_type.partition(b";")[0].decode()
        content = {content_type: {"schema": {"type": "string"}}}
    success: dict[str, Any] = {"description": "Done.", "content": content}
    if endpoint.headers:
        success["headers"] = {
            each.name: {"description": each.meaning, "schema": {"type": each.kind}} for each in endpoint.headers
        }
    responses: dict[str, Any] = {str(endpoint.status): success}
    for status, meaning in _ERROR_MEANINGS.items():
        if status == 401 and endpoint.audience not in _SECURITY:
            continue
        responses[str(status)] = {"description": meaning, "content": _json_content(ErrorAnswer)}
    responses["default"] = {"description": "Any other error.", "content": _json_content(ErrorAnswer)}
    return responses


def _json_content(kind: object) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_SCHEMA_REFERENCE)
    return {"application/json": {"schema": schema}}


@lru_cache
def openapi_document(endpoints: tuple[Endpoint, ...]) -> dict[str, Any]:
    """Return the OpenAPI document of these endpoints, without their address. This takes 150 to 250 ms."""
    documented = [each for each in endpoints if each.audience not in UNDOCUMENTED]
    paths: dict[str, dict[str, Any]] = {}
    for each in documented:
        paths.setdefault(each.path, {})[each.method.lower()] = _describe_operation(each)
    kinds = [kind for each in documented for kind in (each.body, each.answer) if kind is not None]
    _, schemas = msgspec.json.schema_components([*kinds, ErrorAnswer], ref_template=_SCHEMA_REFERENCE)
    return {
        "info": {"title": "Extension backend", "version": version("extcli")},
        "openapi": "3.1.0",
        "servers": [],
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items())), "securitySchemes": _SECURITY_SCHEMES},
    }


SCHEMA_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of all responses under `/schema`. Inline styles are allowed because the viewer uses them."""
_FILE_HEADERS = (*SCHEMA_HEADERS, (b"cache-control", b"max-age=3600"))
_VIEWER_FOLDER = Path(__file__).with_name("viewer")
VIEWER_FILES = {
    "swagger-ui-bundle.js": b"text/javascript",
    "swagger-ui.css": b"text/css",
    "viewer.js": b"text/javascript",
}
"""The files of the viewer, by name, with their content types."""
_VIEWER_PAGE = b"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Extension backend</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="PREFIX/schema/swagger-ui.css">
</head>
<body>
<div id="viewer"></div>
<script src="PREFIX/schema/swagger-ui-bundle.js"></script>
<script src="PREFIX/schema/viewer.js"></script>
</body>
</html>
"""


@endpoint("GET", "/schema/openapi.json", audience=Audience.DOCUMENT)
async def read_document(dispatcher: Dispatcher, call: Call) -> Reply:
    """Return the OpenAPI document of this service."""
    endpoints = tuple(dispatcher.table.endpoints.values())
    # The first call builds the document. Other requests continue during that time.
    described = await asyncio.to_thread(openapi_document, endpoints)
    body = msgspec.json.encode(described | {"servers": [{"url": dispatcher.service.prefix or "/"}]})
    return Reply(200, body, more=SCHEMA_HEADERS)


async def _read_page(dispatcher: Dispatcher, call: Call) -> Reply:
    """Return the page that shows the document."""
    page = _VIEWER_PAGE.replace(b"PREFIX", dispatcher.service.prefix.encode())
    return Reply(200, page, content_type=HTML, more=SCHEMA_HEADERS)


def _viewer_endpoint(name: str, content_type: bytes) -> Endpoint:
    """Declare the endpoint of a file of the viewer."""

    @endpoint("GET", f"/schema/{name}", audience=Audience.DOCUMENT)
    async def read_file(dispatcher: Dispatcher, call: Call) -> Reply:
        return Reply(200, (_VIEWER_FOLDER / name).read_bytes(), content_type=content_type, more=_FILE_HEADERS)

    return read_file


endpoints = (
    read_document,
    *(endpoint("GET", path, audience=Audience.DOCUMENT)(_read_page) for path in ("/schema", "/schema/docs")),
    *(_viewer_endpoint(name, content_type) for name, content_type in VIEWER_FILES.items()),
)
