"""The OpenAPI 3.1 document, generated from the endpoint declarations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from litestar import Request, Router
from litestar.enums import MediaType
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import OpenAPI, Operation

from emulator.config.settings import Limits
from emulator.web.aliases import ALIASES, SERVICE
from emulator.web.dispatch import DISPATCHER, Dispatcher
from emulator.web.docs_page import HEADERS, VIEWER_FILES, DocsPage
from emulator.web.endpoint import Audience, Endpoint, JavaScript

_REFERENCE = "#/components/schemas/{name}"
_TEXTS: Final[dict[object, str]] = {str: "text/plain", JavaScript: "text/javascript"}
"""Content types of answers that are not JSON."""
_SECURITY: Final[dict[Audience, list[Any]]] = {
    Audience.CLIENTS: [{"credential": []}],
    Audience.CLIENT_ID: [{"credential": []}, {}],
}
PAGES = frozenset({"/schema", "/schema/docs", "/schema/openapi.json", *(f"/schema/{name}" for name in VIEWER_FILES)})
"""Every path under `/schema`."""
_ERRORS = {
    400: "The input is unreadable or breaks a rule.",
    401: "The credential is missing, malformed, expired or not yet valid.",
    403: "The role or stage is not allowed here.",
    413: "The body is over the limit.",
    429: "Too many requests, connections or attempts; retry after `Retry-After` seconds.",
    503: "Storage is unavailable; retry after `Retry-After` seconds.",
}


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


def operation_class(endpoint: Endpoint[Any]) -> type[Operation]:
    class Described(Operation):
        def to_schema(self) -> dict[str, Any]:
            return {**super().to_schema(), **operation(endpoint)}

    return Described


def operation(endpoint: Endpoint[Any]) -> dict[str, Any]:
    summary, _, description = (endpoint.handler.__doc__ or endpoint.name).partition("\n")
    limit = getattr(Limits(), endpoint.limit)
    notes = [" ".join(description.split()), _roles_note(endpoint), _alias_note(endpoint)]
    if endpoint.body is not None:
        notes.append(f"The body is parsed as JSON whatever its content type, up to {limit:,} bytes by default.")
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": summary.strip(),
        "description": "\n\n".join(note for note in notes if note),
        "tags": [endpoint.path.removeprefix(SERVICE) if endpoint.path.startswith(SERVICE) else "emulator"],
        "parameters": [
            {"name": each.name, "in": "query", "required": False, "description": each.meaning,
             "schema": {"type": each.kind}}
            for each in endpoint.query
        ],
        "responses": _responses(endpoint),
        "security": _SECURITY.get(endpoint.audience, []),
    }  # fmt: skip
    if endpoint.body is not None:
        described["requestBody"] = {
            "required": endpoint.audience is not Audience.CLIENT_ID,
            "content": _content(endpoint.body),
        }
    return described


def _roles_note(endpoint: Endpoint[Any]) -> str:
    return f"Roles: {', '.join(sorted(endpoint.roles))}." if endpoint.audience is Audience.CLIENTS else ""


def _alias_note(endpoint: Endpoint[Any]) -> str:
    names = sorted(alias for alias, name in ALIASES.items() if SERVICE + name == endpoint.path)
    return f"Also answered at: {', '.join(f'`{SERVICE}{name}`' for name in names)}." if names else ""


def _responses(endpoint: Endpoint[Any]) -> dict[str, Any]:
    text = _TEXTS.get(endpoint.answer)
    content = {text: {"schema": {"type": "string"}}} if text else _content(endpoint.answer)
    success: dict[str, Any] = {"description": "Done.", "content": content}
    if endpoint.headers:
        success["headers"] = {
            each.name: {"description": each.meaning, "schema": {"type": each.kind}} for each in endpoint.headers
        }
    responses: dict[str, Any] = {str(endpoint.status): success}
    for status, meaning in _ERRORS.items():
        if status == 401 and endpoint.audience not in _SECURITY:
            continue
        responses[str(status)] = {"description": meaning, "content": _content(ErrorAnswer)}
    responses["default"] = {"description": "Any other error.", "content": _content(ErrorAnswer)}
    return responses


def _content(kind: object) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    return {"application/json": {"schema": schema}}


class _Document(OpenAPI):
    """Litestar's document plus the schemas of the endpoints' types."""

    schemas: dict[str, Any]

    def to_schema(self) -> dict[str, Any]:
        document = super().to_schema()
        document["components"] = {
            "schemas": dict(sorted(self.schemas.items())),
            "securitySchemes": {
                "credential": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`<client id> <JWT>`, separated by a space",
                }
            },
        }
        return document


class _Json(JsonRenderPlugin):
    """The document as JSON, without endpoints that the running service does not have."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        dispatcher: Dispatcher = request.scope["state"][DISPATCHER]
        paths = {
            path: {method: each for method, each in item.items() if dispatcher.serves(method.upper(), path)}
            for path, item in openapi_schema["paths"].items()
        }
        served = {path: item for path, item in paths.items() if item}
        return super().render(request, {**openapi_schema, "paths": served})


class DocumentConfig(OpenAPIConfig):
    """Litestar's configuration for the document and its viewer under `/schema`."""

    def __init__(self, endpoints: Iterable[Endpoint[Any]], version: str) -> None:
        super().__init__(
            title="Extension backend",
            version=version,
            path="/schema",
            render_plugins=[DocsPage(path="/docs"), _Json(media_type=MediaType.JSON)],
            openapi_router=Router(path="/schema", route_handlers=[], response_headers=HEADERS),
        )
        kinds = [kind for each in endpoints for kind in (each.body, each.answer) if kind not in (None, *_TEXTS)]
        _, self._schemas = msgspec.json.schema_components([*kinds, ErrorAnswer], ref_template=_REFERENCE)

    def to_openapi_schema(self) -> OpenAPI:
        """Create the document that Litestar fills with paths."""
        plain = super().to_openapi_schema()
        document = _Document(info=plain.info, servers=plain.servers, paths=plain.paths, components=plain.components)
        document.schemas = self._schemas
        return document
