"""Routes `/_ns/<name>/…` to the service of that name, on the same port, and answers requests about namespaces
(`operations.md`, Namespaces)."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

from litestar.enums import ScopeType
from litestar.types import HTTPScope, Receive, Scope, Send
from msgspec import Struct

from emulator.config.settings import Limits
from emulator.errors import EngineError, ServiceError
from emulator.http.access import Gate
from emulator.http.forms import json_of
from emulator.http.front import HotPath, preflight_reply
from emulator.http.request import AsgiRequest
from emulator.http.response import JSON, Reply, error_reply
from emulator.journal import Entry
from emulator.namespaces.registry import Listing, Registry, checked
from emulator.observability.request_context import PRODUCTION, bind_context, context_of, enter_namespace
from emulator.parity.rules import ENDPOINT
from emulator.realtime.connection import Connection, Peer
from emulator.refusals import storage_failed
from emulator.wire import json_codec
from emulator.wire.refusals import invalid_member

_PREFIX: Final = "/_ns"
_ABSENT_IN_PRODUCTION: Final = ((PRODUCTION, ENDPOINT.encode()),)
_ADDRESS: Final = re.compile(r"/+_ns/+(?P<name>[^/]*)(?P<path>(?:/.*)?)", re.DOTALL)
_MAX_BODY: Final = 4_096
"""Bytes of a body that names namespaces."""
_log = logging.getLogger("emulator")


Creates = Callable[[Iterable[tuple[bytes, bytes]], str], bool]
"""Returns whether a request, with these headers and from this address, may create the namespace that it uses."""


class Created(Struct):
    """The answer to a new namespace."""

    namespace: str


class Wanted(Struct, forbid_unknown_fields=True, rename={"source": "from"}):
    """The body of a call that creates or drops a namespace, as JSON or a form; all members may be absent."""

    name: str = ""
    """The new namespace; a free name if absent."""
    source: str = ""
    """The namespace to copy."""
    drop: str = ""
    """The namespace to drop."""


class Namespaces:
    """An ASGI application that leads to the service of each namespace."""

    def __init__(self, registry: Registry, gate: Gate, creates: Creates) -> None:
        """`gate` decides who may list, create and drop namespaces, and `creates` whose use creates one."""
        self._creates = creates
        self._registry = registry
        self._default = registry.default
        self._gate = gate

    @property
    def limits(self) -> Limits:
        return self._default.limits

    @property
    def hot_path(self) -> HotPath | None:
        """The hot path of the default namespace."""
        return self._default.hot_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _PREFIX not in scope["path"] or scope["type"] != ScopeType.HTTP:
            await self._default(scope, receive, send)
            return
        if scope["path"].strip("/") == _PREFIX[1:] and scope["method"] in ("GET", "POST"):
            await self._answer(scope, send, self._list if scope["method"] == "GET" else partial(self._change, receive))
            return
        found = _ADDRESS.fullmatch(scope["path"])
        if found is None:
            await self._default(scope, receive, send)
        elif found["path"] in ("", "/") and scope["method"] in ("DELETE", "POST"):
            await self._answer(
                scope, send, self._drop if scope["method"] == "DELETE" else partial(self._change, receive)
            )
        else:
            await self._lead(found["name"], found["path"], scope, receive, send)

    async def _lead(self, name: str, path: str, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Let the service of a namespace answer."""
        context = bind_context(scope)
        try:
            enter_namespace(checked(name))
            if scope["method"] == "OPTIONS" and not self._registry.is_open(name):  # it would answer the same
                reply, error = preflight_reply(path, scope["headers"])
                self._default.record_answer(context, scope["method"], scope["path"], reply, error)
                await reply(send)
                return
            if not self._registry.is_open(name):
                await self._registry.suggest(name)
            address = scope["client"][0] if scope["client"] else ""
            front = await self._registry.front(name, creates=self._creates(scope["headers"], address))
        except ServiceError as error:
            self.refused(error)
            await self._refuse(scope, send, error, cors=path.startswith("/v1/"))
            return
        except EngineError as error:
            _log.error("storage failed in opening the namespace %s: %s", name[:64], error)
            await self._refuse(scope, send, storage_failed(), cors=path.startswith("/v1/"))
            return
        inner: Any = {**scope, "path": path or "/", "raw_path": (path or "/").encode()}
        with self._registry.in_use(name):
            await front(inner, receive, send)

    async def _answer(self, scope: HTTPScope, send: Send, work: Callable[[HTTPScope], Awaitable[object]]) -> None:
        """Answer a request about namespaces, of a caller who may control the service."""
        context = bind_context(scope)
        try:
            self._gate(scope)
            body = json_codec.encode(await work(scope))
        except ServiceError as error:
            self.refused(error)
            await self._refuse(scope, send, error)
        except EngineError as error:
            _log.error("storage failed in %s %s: %s", scope["method"], scope["path"][:80], error)
            await self._refuse(scope, send, storage_failed())
        else:
            reply = Reply(200, body, cors=False, content_type=JSON, more=_ABSENT_IN_PRODUCTION)
            self._default.record_answer(context, scope["method"], scope["path"], reply)
            await reply(send)

    async def _refuse(self, scope: HTTPScope, send: Send, error: ServiceError, *, cors: bool = False) -> None:
        reply = error_reply(error, cors=cors, shows_code=True)
        self._default.record_answer(context_of(scope), scope["method"], scope["path"], reply, error)
        await reply(send)

    async def _list(self, scope: HTTPScope) -> Listing:
        return await self._registry.listing()

    async def _drop(self, scope: HTTPScope) -> dict[str, str]:
        await self._registry.drop(_name_in(scope))
        return {}

    async def _change(self, receive: Receive, scope: HTTPScope) -> Created | dict[str, str]:
        """Create a namespace, or drop that in the member `drop`. Path, query and body may each say which."""
        wanted = await _wanted(scope, receive)
        name, source = _name_in(scope), _source_in(scope)
        if wanted.drop:
            if wanted.name or wanted.source:
                problem = "must be absent if name or from is given: a call creates or drops a namespace"
                raise invalid_member("drop", wanted.drop, "no drop, or neither name nor from", problem)
            await self._registry.drop(_agreed("drop", wanted.drop, name, "name in the path"))
            return {}
        name = _agreed("name", wanted.name, name, "name in the path")
        return Created(await self._registry.create(name, _agreed("from", wanted.source, source, "source in the query")))

    def refused(self, error: ServiceError) -> None:
        """Count a request rejected before dispatch, in the default namespace."""
        self._default.refused(error)

    def record(self, path: str, entry: Callable[[str], Entry]) -> None:
        """Add an answer that no endpoint gave to the journal of its namespace, or else of the default one."""
        found = _ADDRESS.fullmatch(path)
        front = self._registry.find(found["name"]) if found else None
        if found and front is not None:
            front.record(found["path"], entry)
        else:
            self._default.record(path, entry)

    async def open_peer(self, path: str, query: str, connection: Connection) -> Peer:
        found = _ADDRESS.fullmatch(path)
        if found is None:
            return await self._default.open_peer(path, query, connection)
        enter_namespace(checked(found["name"]))
        creates = self._creates(connection.headers, connection.address)
        front = await self._registry.front(found["name"], creates=creates)
        return await front.open_peer(found["path"], query, connection)

    def end_held(self) -> None:
        """End the requests that wait for something, in all namespaces: the service stops."""
        self._registry.end_held()


async def _wanted(scope: HTTPScope, receive: Receive) -> Wanted:
    request = AsgiRequest(scope, receive, context_of(scope))
    body = json_of(await request.body(_MAX_BODY), request.headers, Wanted)
    return json_codec.decode(body, Wanted) if body.strip() else Wanted()


def _agreed(member: str, given: str, other: str, other_name: str) -> str:
    """Return what the body or another place says. Raises `BadRequest` if they differ."""
    if given and other and given != other:
        raise invalid_member(member, given, f"the {other_name}, {other[:64]!r}; leave out one of them")
    return given or other


def _source_in(scope: HTTPScope) -> str:
    query = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("from", [""])[0]


def _name_in(scope: HTTPScope) -> str:
    found = _ADDRESS.fullmatch(scope["path"])
    return found["name"] if found else ""
