"""Routes `/_ns/<name>/…` to an isolated service of that name, on the same port (`operations.md`, Namespaces).

They are isolated because each has a `Service` of its own, with its own clock and its own namespace of the engine
(`opening.open_service`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

from litestar.enums import ScopeType
from litestar.types import HTTPScope, Receive, Scope, Send
from msgspec import Struct

from emulator.clock import monotonic
from emulator.config.settings import Limits
from emulator.errors import BadRequest, Conflict, EngineError, NotFound, ServiceError, TooManyRequests, Unavailable
from emulator.ids import token_id
from emulator.journal import Entry
from emulator.observability.audit import audit
from emulator.observability.request_context import PRODUCTION, bind_context, context_of, detached, namespace
from emulator.parity.rules import ENDPOINT
from emulator.realtime.websocket import Peer, WebSocket
from emulator.web.dispatch import Gate
from emulator.web.forms import fields_of
from emulator.web.front import Front, HotPath
from emulator.web.response import JSON, Reply, error_reply
from emulator.wire import json_codec

DEFAULT: Final = "default"
"""The namespace of the plain paths."""
_PREFIX: Final = "/_ns"
_ABSENT_IN_PRODUCTION: Final = ((PRODUCTION, ENDPOINT.encode()),)
_ADDRESS: Final = re.compile(r"/+_ns/+(?P<name>[^/]*)(?P<path>(?:/.*)?)", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_log = logging.getLogger("emulator")

Open = Callable[[str], AbstractAsyncContextManager[Front]]
"""Opens the service of a namespace."""


@dataclass
class _Tenant:
    """A namespace that is open or opening. Times are in seconds of `monotonic`, which no move of a clock changes."""

    opened_at: float
    used_at: float
    requests: int = 0
    """The requests that are running."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    front: Front | None = None


class Details(Struct):
    """A namespace in use."""

    name: str
    records: int
    """The documents, polls, buffers, lists and sets of codes that it holds."""
    age: int
    """Seconds since its first use."""
    idle: int
    """Seconds since its last use."""
    sockets: int


class Listing(Struct):
    """The namespaces in use, by name; `default` is absent."""

    namespaces: list[str]
    details: list[Details]


class Created(Struct):
    """The answer to a new namespace."""

    namespace: str


class Namespaces:
    """An ASGI application that routes to the service of each namespace. A namespace is created on first use."""

    def __init__(
        self, default: Front, open_front: Open, gate: Gate, max_open: int, max_idle: int | None = None
    ) -> None:
        """`max_idle` is in seconds: a namespace that no request and no socket uses for so long is dropped."""
        self._default = default
        self._open = open_front
        self._gate = gate
        self._max_open = max_open
        self._max_idle = max_idle
        self._watching: asyncio.Task[None] | None = None
        self._tenants: dict[str, _Tenant] = {}

    @property
    def limits(self) -> Limits:
        return self._default.limits

    def __len__(self) -> int:
        return len(self._tenants)

    def names(self, latest: int) -> list[str]:
        """Return the names of the namespaces that were used last, without `default`, in order."""
        return sorted(sorted(self._tenants, key=lambda name: -self._tenants[name].used_at)[:latest])

    @property
    def hot_path(self) -> HotPath | None:
        """The hot path of the default namespace."""
        return self._default.hot_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _PREFIX not in scope["path"] or scope["type"] != ScopeType.HTTP:
            await self._default(scope, receive, send)
            return
        if scope["path"].strip("/") == _PREFIX[1:] and scope["method"] in ("GET", "POST"):
            work = self._list if scope["method"] == "GET" else partial(self._change, receive)
            await self._answer(scope, send, work)
            return
        found = _ADDRESS.fullmatch(scope["path"])
        if found is None:
            await self._default(scope, receive, send)
            return
        name, path = found["name"], found["path"]
        if path in ("", "/") and scope["method"] in ("DELETE", "POST"):
            await self._answer(scope, send, self._drop if scope["method"] == "DELETE" else self._create)
            return
        bind_context(scope)
        try:
            front = await self._front(_checked(name))
        except ServiceError as error:
            self.refused(error)
            await self._refuse(scope, send, error, cors=path.startswith("/v1/"))
            return
        except EngineError as error:
            _log.error("storage failed in opening the namespace %s: %s", name[:64], error)
            await self._refuse(scope, send, Unavailable(), cors=path.startswith("/v1/"))
            return
        inner: Any = {**scope, "path": path or "/", "raw_path": (path or "/").encode()}
        tenant = self._tenants.get(name)
        if tenant is None:
            await front(inner, receive, send)
            return
        tenant.requests += 1
        try:
            await front(inner, receive, send)
        finally:
            tenant.requests -= 1
            tenant.used_at = monotonic()

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
            await self._refuse(scope, send, Unavailable())
        else:
            reply = Reply(200, body, cors=False, content_type=JSON, more=_ABSENT_IN_PRODUCTION)
            self._default.record_answer(context, scope["method"], scope["path"], reply)
            await reply(send)

    async def _refuse(self, scope: HTTPScope, send: Send, error: ServiceError, *, cors: bool = False) -> None:
        reply = error_reply(error, cors=cors)
        self._default.record_answer(context_of(scope), scope["method"], scope["path"], reply, error)
        await reply(send)

    async def _list(self, scope: HTTPScope) -> Listing:
        return await self.listing()

    async def listing(self, latest: int | None = None) -> Listing:
        """List the namespaces in use, without `default`: all, or those that were used last."""
        now = monotonic()
        chosen = sorted(self._tenants.items(), key=lambda each: -each[1].used_at)[:latest]
        details = [
            Details(name, await front.size(), int(now - tenant.opened_at), int(now - tenant.used_at), front.sockets)
            for name, tenant in sorted(chosen, key=lambda each: each[0])
            if (front := tenant.front) is not None
        ]
        return Listing([each.name for each in details], details)

    async def _drop(self, scope: HTTPScope) -> dict[str, str]:
        await self._dropped(_checked(_name_in(scope)))
        return {}

    async def _change(self, receive: Receive, scope: HTTPScope) -> Created | dict[str, str]:
        """Create a namespace, or drop that in the field `drop` of a form; `name` and `from` are fields, too."""
        fields = await fields_of(scope, receive)
        if name := fields.get("drop"):
            await self._dropped(_checked(name))
            return {}
        query = scope["query_string"].decode("latin-1")
        return await self._created(fields.get("name", ""), fields.get("from") or _source_in(query))

    async def _create(self, scope: HTTPScope) -> Created:
        return await self._created(_name_in(scope), _source_in(scope["query_string"].decode("latin-1")))

    async def _created(self, name: str, source: str) -> Created:
        """Create a namespace with this name, or a free one; with the data and the clock of a source, if one is given.

        Raises `Conflict` if it is in use and not empty, and `NotFound` for a source that is not in use.
        """
        name = _checked(name) if name else f"ns-{token_id()[:12].lower()}"
        if source and source != DEFAULT and _checked(source) not in self._tenants:
            raise NotFound("No such namespace", f"from: there is no namespace {source} in use; GET /_ns lists them")
        is_new = name not in self._tenants and name != DEFAULT
        front = await self._front(name)
        if not is_new and await front.size():
            raise Conflict("Namespace in use", f"the namespace {name} has data; DELETE /_ns/{name} drops it")
        if source:
            try:
                await front.copy(await self._front(source))
            except BaseException:
                if is_new:
                    await self.drop(name)
                raise
        audit("namespace created", named=name, source=source)
        return Created(name)

    async def _dropped(self, name: str) -> None:
        await self.drop(name)
        audit("namespace dropped", named=name)

    def refused(self, error: ServiceError) -> None:
        """Count a request rejected before dispatch, in the default namespace."""
        self._default.refused(error)

    def record(self, path: str, entry: Callable[[str], Entry]) -> None:
        """Add an answer that no endpoint gave to the journal of its namespace, or else of the default one."""
        found = _ADDRESS.fullmatch(path)
        tenant = self._tenants.get(found["name"]) if found else None
        if found and tenant is not None and tenant.front is not None:
            tenant.front.record(found["path"], entry)
        else:
            self._default.record(path, entry)

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        found = _ADDRESS.fullmatch(path)
        if found is None:
            return await self._default.open_peer(path, query, connection)
        front = await self._front(_checked(found["name"]))
        return await front.open_peer(found["path"], query, connection)

    async def _front(self, name: str) -> Front:
        """The service of a namespace, opened on first use; log lines name it from here on.

        Raises `TooManyRequests` beyond the limit.
        """
        if name == DEFAULT:
            return self._default
        namespace.set(name)
        while True:
            tenant = self._tenants.get(name)
            if tenant is None:
                if len(self._tenants) >= self._max_open:
                    detail = f"the limit of {self._max_open} is reached; DELETE /_ns/<name> drops one"
                    raise TooManyRequests("Too many namespaces", detail)
                tenant = self._tenants[name] = _Tenant(monotonic(), monotonic())
            tenant.used_at = monotonic()
            async with tenant.opening:
                if self._tenants.get(name) is not tenant:  # it was dropped meanwhile
                    continue
                if tenant.front is None:
                    try:
                        with detached():  # background tasks do not belong to the first request
                            tenant.front = await tenant.stack.enter_async_context(self._open(name))
                    except BaseException:
                        self._tenants.pop(name, None)
                        raise
                return tenant.front

    async def drop(self, name: str) -> None:
        """Delete a namespace with its data, clock and connections. The next use creates a new one."""
        front = await self._front(name)
        front.end_held()
        await front.reset()
        tenant = self._tenants.get(name)
        if tenant is None:
            return
        async with tenant.opening:  # the next use waits: closing also deletes what has this name in a file
            if self._tenants.get(name) is tenant:
                front.drop_on_close()
                tenant.front = None
                try:
                    await tenant.stack.aclose()
                finally:
                    self._tenants.pop(name)

    def end_held(self) -> None:
        """End the requests that wait for something, in all namespaces: the service stops."""
        for front in (self._default, *(tenant.front for tenant in self._tenants.values())):
            if front is not None:
                front.end_held()

    def start(self) -> None:
        """Begin to drop idle namespaces, if they are to be dropped."""
        if self._max_idle is not None:
            self._watching = asyncio.create_task(self._watch(self._max_idle))

    async def _watch(self, max_idle: int) -> None:
        while True:
            await asyncio.sleep(max(0.05, min(60.0, max_idle / 4)))
            await self.drop_idle(max_idle)

    async def drop_idle(self, max_idle: float) -> None:
        """Drop the namespaces without requests and sockets whose last use is `max_idle` seconds ago."""
        for name, tenant in list(self._tenants.items()):
            front, idle = tenant.front, monotonic() - tenant.used_at
            if front is None or idle < max_idle or tenant.requests or front.sockets:
                continue
            try:
                await self.drop(name)
                _log.info("dropped the namespace %s after %.0f s without use", name, idle)
            except EngineError as error:
                _log.warning("the idle namespace %s was not dropped, retrying later: %s", name, error)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        tenants, self._tenants = self._tenants, {}
        for tenant in tenants.values():
            await tenant.stack.aclose()


def _source_in(query: str) -> str:
    return parse_qs(query).get("from", [""])[0]


def _name_in(scope: HTTPScope) -> str:
    found = _ADDRESS.fullmatch(scope["path"])
    return found["name"] if found else ""


def _checked(name: str) -> str:
    if not name:
        raise NotFound("Not Found", "the path of a namespace is /_ns/<name>/…")
    if not _NAME.fullmatch(name):
        raise BadRequest("Invalid namespace", "namespace: must be 1 to 64 letters, digits, '-' and '_'")
    return name
