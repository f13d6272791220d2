"""Routes `/_ns/<name>/…` to the service of that namespace, on the same port.

It also lists, creates and drops namespaces, and plays the demo, which has one of its own.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from litestar.types import HTTPScope, Receive, Scope, Send
from msgspec import Struct

from emulator.control.demo import DEMO_NAMESPACE
from emulator.control.gate import ControlGate
from emulator.core.errors import EngineError, ServiceError, storage_failed
from emulator.core.observability.audit import audit
from emulator.core.observability.entries import Unrouted
from emulator.core.observability.request_context import bind_context, enter_namespace, log_name
from emulator.core.wire.refusals import invalid_member
from emulator.core.wire.url import SERVICE
from emulator.http.endpoint import Call, Nothing, Parameter, control_endpoint
from emulator.http.refusals import no_path
from emulator.http.response import error_reply
from emulator.namespaces.registry import NamespaceList, Registry, checked_namespace
from emulator.realtime.connection import Peer
from emulator.realtime.websocket import WebSocket

_SOURCE_PARAMETER = Parameter("from", "The namespace to copy. Default: none, so the new namespace has no data.")


class NewNamespace(Struct):
    """The response to a new namespace; a drop returns `{}`."""

    namespace: str


class NamespaceRequest(Struct, forbid_unknown_fields=True, rename={"source": "from"}):
    """The body of a call that creates or drops a namespace, as JSON or a form; all members may be absent."""

    name: str = ""
    """The name of the new namespace; a free name if absent."""
    source: str = ""
    """The namespace to copy."""
    drop: str = ""
    """The namespace to drop."""


@control_endpoint("GET", "/_ns", answer=NamespaceList)
async def list_namespaces(namespaces: Registry, call: Call) -> NamespaceList:
    """List the namespaces in use, by name; `default` is absent."""
    return await namespaces.list_details()


@control_endpoint("POST", "/_ns", body=NamespaceRequest, answer=NewNamespace, query=(_SOURCE_PARAMETER,))
async def change_namespaces(namespaces: Registry, call: Call) -> NewNamespace | Nothing:
    """Create a namespace, or drop the one in the member `drop`."""
    return await _create_or_drop(namespaces, call, "")


@control_endpoint("POST", "/_ns/{name}", body=NamespaceRequest, answer=NewNamespace, query=(_SOURCE_PARAMETER,))
async def create_namespace(namespaces: Registry, call: Call) -> NewNamespace | Nothing:
    """Create the namespace that the path names. The body may be absent."""
    return await _create_or_drop(namespaces, call, call.text("name"))


@control_endpoint("DELETE", "/_ns/{name}")
async def drop_namespace(namespaces: Registry, call: Call) -> Nothing:
    """Delete a namespace with its data, clock and connections. The next use creates a new one."""
    await namespaces.drop(call.text("name"))
    return Nothing()


async def _create_or_drop(namespaces: Registry, call: Call, name: str) -> NewNamespace | Nothing:
    """Create or drop the namespace that the path, the query or the body names. All that are present must agree."""
    wanted = call.body(NamespaceRequest) if call.raw.strip() else NamespaceRequest()
    if wanted.drop:
        if wanted.name or wanted.source:
            problem = "must be absent if name or from is given: one call cannot both create and drop"
            raise invalid_member("drop", wanted.drop, "no drop, or neither name nor from", problem)
        await namespaces.drop(_agreed_value("drop", wanted.drop, name, "name in the path"))
        return Nothing()
    name = _agreed_value("name", wanted.name, name, "name in the path")
    source = _agreed_value("from", wanted.source, call.text("from"), "source in the query")
    return NewNamespace(await namespaces.create(name, source))


def _agreed_value(member: str, given: str, other: str, other_name: str) -> str:
    """Return the value that the body or another part of the request gives. Raises `BadRequest` if they differ."""
    if given and other and given != other:
        raise invalid_member(member, given, f"the {other_name}, {other[:64]!r}; leave out one of the two")
    return given or other


@control_endpoint("POST", "/_emulator/demo")
async def play_demo(namespaces: Registry, call: Call) -> Nothing:
    """Play the demo from its beginning in the namespace `demo`: first delete its data, and reset its clock.

    It ends after three minutes, and at a reset or a drop of the namespace.
    """
    service = await namespaces.open(DEMO_NAMESPACE)
    await service.demo.play()
    audit("demo started")
    return Nothing()


@control_endpoint("POST", "/_emulator/demo/stop")
async def stop_demo(namespaces: Registry, call: Call) -> Nothing:
    """Stop the demo. Its data stays."""
    if service := namespaces.find_open(DEMO_NAMESPACE):
        await service.demo.close()
    audit("demo stopped")
    return Nothing()


_ALL_PATH = "/_ns"
_ONE_PATH = "/_ns/{name}"
_NAMESPACE_ENDPOINTS = (list_namespaces, change_namespaces, create_namespace, drop_namespace)
"""The calls about namespaces, which the default namespace answers."""
_NAMESPACE_PATH = re.compile(r"/+_ns/+(?P<name>[^/]*)(?P<path>(?:/.*)?)", re.DOTALL)
_NESTED_PATH = re.compile(r"/+_ns(?:/|$)")
"""Below a namespace, there are none."""
_log = logging.getLogger("emulator")


class NamespaceRouter:
    """An ASGI application that routes to the service of each namespace."""

    def __init__(self, registry: Registry, gate: ControlGate) -> None:
        self._may_create = gate.may_create_namespace
        self._registry = registry
        self._default = registry.default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request: Any = scope
        found = split_namespace_path(request["method"], request["path"])
        if found is None:
            await self._default(scope, receive, send)
        else:
            await self._forward_request(*found, request, receive, send)

    async def _forward_request(self, name: str, path: str, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Pass the request to the service of a namespace."""
        context, unserved = bind_context(scope), None
        try:
            context.namespace = log_name(checked_namespace(name))
            if _NESTED_PATH.match(path):
                raise no_path(path=path[:100], hint=f"the endpoints are under {SERVICE}")
            is_open = self._registry.find_open(name) is not None
            if scope["method"] == "OPTIONS" and not is_open:  # the result would be the same
                unserved = self._default.preflight_reply(path, scope["headers"])
            else:
                if not is_open:
                    await self._registry.hint_at_similar_name(name)
                address = scope["client"][0] if scope["client"] else ""
                service = await self._registry.open(name, creates=self._may_create(scope["headers"], address))
        except (ServiceError, EngineError) as failure:
            refusal = failure if isinstance(failure, ServiceError) else storage_failed()
            self.count_refusal(refusal)
            if failure is not refusal:
                _log.error("storage failed while opening the namespace %s: %s", name[:64], failure)
            unserved = error_reply(refusal, cors=path.startswith("/v1/"), shows_code=True), refusal
        if unserved is not None:
            reply, error = unserved
            self._default.record(Unrouted(context, scope["method"], scope["path"], reply.status, reply.content, error))
            await reply(scope, receive, send)
            return
        path = path or "/"
        inner: Any = {**scope, "path": path, "raw_path": path.encode()}
        with self._registry.in_use(name):
            await service(inner, receive, send)

    def count_refusal(self, error: ServiceError) -> None:
        """Count a request rejected before dispatch, in the default namespace."""
        self._default.count_refusal(error)

    def record(self, request: Unrouted) -> None:
        """Record a response that came from no endpoint in the journal of its namespace; without one, in `default`."""
        found = _NAMESPACE_PATH.fullmatch(request.path)
        if found and (service := self._registry.find_open(found["name"])):
            service.record(request._replace(path=found["path"]))
        else:
            self._default.record(request)

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        found = _NAMESPACE_PATH.fullmatch(path)
        if found is None:
            return await self._default.open_peer(path, query, connection)
        name = checked_namespace(found["name"])
        enter_namespace(name)
        service = await self._registry.open(name, creates=self._may_create(connection.headers, connection.address))
        return await service.open_peer(found["path"], query, connection)

    def end_held(self) -> None:
        """End the requests that wait for an event, in all namespaces, because the service stops."""
        for service in self._registry.open_services:
            service.end_held()


def split_namespace_path(method: str, path: str) -> tuple[str, str] | None:
    """Return the namespace of a request and the rest of its path; `None` for the default one.

    All paths below a name are routed, except those about the namespace itself.
    """
    found = _NAMESPACE_PATH.fullmatch(path) if _ALL_PATH in path else None
    if found is None:
        return None
    name, rest = found["name"], found["path"]
    method = "GET" if method == "HEAD" else method  # ruling W9
    called = method, _ONE_PATH if name else _ALL_PATH
    is_about = rest in ("", "/") and any((each.method, each.path) == called for each in _NAMESPACE_ENDPOINTS)
    return None if is_about else (name, rest)
