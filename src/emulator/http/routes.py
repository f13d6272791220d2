"""The Litestar application: one route per endpoint. It has no state; the scope carries the service's dispatcher."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any, Final

from litestar import Litestar, Request, Response
from litestar.config.app import AppConfig
from litestar.enums import HttpMethod
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.plugins import PluginProtocol
from litestar.response import Stream

from emulator.core.errors import ServiceError, internal_error
from emulator.core.observability.request_context import context_of
from emulator.core.wire.url import CONTROL, SERVICE, is_socket_path
from emulator.http.dispatch import DISPATCHER, Dispatcher
from emulator.http.endpoint import Endpoint
from emulator.http.openapi import Document, schema_routes
from emulator.http.recording import record_unrouted
from emulator.http.refusals import invalid_request, no_path, not_in_production, upgrade_missing
from emulator.http.response import Reply, error_reply

_log = logging.getLogger("emulator")

_OWN: Final = ("/", "/_emulator", "/_ns")
"""Paths of the sandbox that are below none of the following."""
_BELOW: Final = (SERVICE, CONTROL, "/_ns/")


class _Routes(Litestar):
    """Litestar without its default plugins, which import pydantic, attrs and opentelemetry. No endpoint uses them."""

    __slots__ = ()

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return plugins

    @staticmethod
    def _patch_opentelemetry_middleware(config: AppConfig) -> AppConfig:
        return config


def build_routes(endpoints: Iterable[Endpoint[Any]]) -> Litestar:
    declared = list(endpoints)
    return _Routes(
        route_handlers=[*_handlers(declared), *schema_routes(Document(declared, version("extcli")))],
        exception_handlers={Exception: _error_response},
        openapi_config=None,
        logging_config=None,
    )


def _handlers(endpoints: Iterable[Endpoint[Any]]) -> Iterator[HTTPRouteHandler]:
    """Yield a handler for each set of methods that a path has, because Litestar inspects every handler at start-up."""
    methods: dict[str, set[str]] = {}
    for each in endpoints:
        methods.setdefault(each.path, set()).add(each.method)
    paths: dict[frozenset[str], list[str]] = {}
    for path, names in methods.items():
        paths.setdefault(frozenset(names), []).append(path)
    for group, alike in paths.items():
        yield HTTPRouteHandler(
            [each.replace("}", ":str}") for each in alike],
            http_method=[HttpMethod(name) for name in group],
            status_code=200,
        )(_perform)


async def _perform(request: Request[Any, Any, Any]) -> Response[Any]:
    method, path = request.method, request.scope["path_template"]
    dispatcher: Dispatcher = request.scope["state"][DISPATCHER]
    if not dispatcher.serves(method, path):
        raise not_in_production(path=path)
    return _response(await dispatcher.perform(method, path, request.scope, request.receive))


def _response(reply: Reply) -> Response[Any]:
    headers = {name.decode(): value.decode() for name, value in reply.headers if name != b"content-type"}
    media_type = reply.content_type.decode()
    if isinstance(reply.body, bytes):
        return Response(reply.body, status_code=reply.status, headers=headers, media_type=media_type)
    return Stream(reply.body, status_code=reply.status, headers=headers, media_type=media_type)


def _error_response(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Respond to errors raised before an endpoint: unknown path, wrong method, or a request that Litestar rejects."""
    path, failure = request.scope["path"], _as_service_error(request, error)
    dispatcher: Dispatcher = request.scope["state"][DISPATCHER]
    reply = error_reply(failure, cors=path.startswith("/v1/"), shows_code=dispatcher.parity.is_on)
    record_unrouted(dispatcher.journal, context_of(request.scope), request.method, path, reply, failure)
    return _response(reply)


def _as_service_error(request: Request[Any, Any, Any], error: Exception) -> ServiceError:
    path = request.scope["path"]
    if isinstance(error, ServiceError):
        return error
    if not isinstance(error, HTTPException) or error.status_code >= 500:
        _log.error("unexpected failure in %s %s", request.method, path[:100], exc_info=error)
        return internal_error()
    dispatcher: Dispatcher = request.scope["state"][DISPATCHER]
    hidden = (path in _OWN or path.startswith(_BELOW)) and not dispatcher.methods(path)
    if error.status_code == 404 or (error.status_code == 405 and hidden):
        if request.method == "GET" and is_socket_path(path):
            return upgrade_missing(path=path[:100])
        hint = "" if path.startswith((*_BELOW, "/schema/")) else f"the endpoints are under {SERVICE}"
        if near := dispatcher.nearest(path):
            hint = f"did you mean {near}?"
        return no_path(path=path[:100], hint=hint)
    if error.status_code == 405:
        dispatcher.parity.judge_unsupported_method(request.method, path)
        return dispatcher.wrong_method(request.method, path)
    return invalid_request(problem=error.detail)
