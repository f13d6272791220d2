"""Routes `/_ns/<name>/…` to an isolated service of that name, on the same port (`operations.md`, Namespaces).

They are isolated because each has a `Service` of its own, with its own clock and its own namespace of the engine
(`app.open_service`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from litestar.enums import ScopeType
from litestar.types import HTTPScope, Receive, Scope, Send

from emulator.config.settings import Limits
from emulator.errors import BadRequest, EngineError, NotFound, ServiceError, TooManyRequests, Unavailable
from emulator.observability.request_context import bind_context, detached, namespace
from emulator.realtime.websocket import Peer, WebSocket
from emulator.web.dispatch import Gate
from emulator.web.front import Front, HotPath
from emulator.web.response import JSON, Reply, error_reply
from emulator.wire import json_codec

DEFAULT: Final = "default"
"""The namespace of the plain paths."""
_PREFIX: Final = "/_ns"
_ADDRESS: Final = re.compile(r"/+_ns/+(?P<name>[^/]*)(?P<path>(?:/.*)?)", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_log = logging.getLogger("emulator")

Open = Callable[[str], AbstractAsyncContextManager[Front]]
"""Opens the service of a namespace."""


@dataclass
class _Tenant:
    """A namespace that is open or opening."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    front: Front | None = None


class Namespaces:
    """An ASGI application that routes to the service of each namespace. A namespace is created on first use."""

    def __init__(self, default: Front, open_front: Open, gate: Gate, max_open: int) -> None:
        self._default = default
        self._open = open_front
        self._gate = gate
        self._max_open = max_open
        self._tenants: dict[str, _Tenant] = {}

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
        if scope["method"] == "GET" and scope["path"].strip("/") == _PREFIX[1:]:
            await self._list(scope, send)
            return
        found = _ADDRESS.fullmatch(scope["path"])
        if found is None:
            await self._default(scope, receive, send)
            return
        bind_context(scope)
        name, path = found["name"], found["path"]
        try:
            if path in ("", "/") and scope["method"] == "DELETE":
                self._gate(scope)
                await self.drop(_checked(name))
                await Reply(200, b"{}", cors=False, content_type=JSON)(send)
                return
            front = await self._front(_checked(name))
        except ServiceError as error:
            self.refused(error)
            await error_reply(error, cors=path.startswith("/v1/"))(send)
            return
        except EngineError as error:
            _log.error("storage failed in opening the namespace %s: %s", name[:64], error)
            await error_reply(Unavailable(), cors=path.startswith("/v1/"))(send)
            return
        inner: Any = {**scope, "path": path or "/", "raw_path": (path or "/").encode()}
        await front(inner, receive, send)

    async def _list(self, scope: HTTPScope, send: Send) -> None:
        """Answer the names of the namespaces in use, without `default`."""
        bind_context(scope)
        try:
            self._gate(scope)
        except ServiceError as error:
            self.refused(error)
            await error_reply(error, cors=False)(send)
            return
        names = sorted(name for name, tenant in self._tenants.items() if tenant.front is not None)
        await Reply(200, json_codec.encode({"namespaces": names}), cors=False, content_type=JSON)(send)

    def refused(self, error: ServiceError) -> None:
        """Count a request rejected before dispatch, in the default namespace."""
        self._default.refused(error)

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
        tenant = self._tenants.get(name)
        if tenant is None:
            if len(self._tenants) >= self._max_open:
                detail = f"the limit of {self._max_open} is reached; DELETE /_ns/<name> drops one"
                raise TooManyRequests("Too many namespaces", detail)
            tenant = self._tenants[name] = _Tenant()
        async with tenant.opening:
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
        tenant = self._tenants.pop(name, None)
        if tenant is not None:
            front.drop_on_close()
            await tenant.stack.aclose()

    def end_held(self) -> None:
        """End the requests that wait for something, in all namespaces: the service stops."""
        for front in (self._default, *(tenant.front for tenant in self._tenants.values())):
            if front is not None:
                front.end_held()

    async def close(self) -> None:
        tenants, self._tenants = self._tenants, {}
        for tenant in tenants.values():
            await tenant.stack.aclose()


def _checked(name: str) -> str:
    if not name:
        raise NotFound("Not Found", "the path of a namespace is /_ns/<name>/…")
    if not _NAME.fullmatch(name):
        raise BadRequest("Invalid namespace", "namespace: must be 1 to 64 letters, digits, '-' and '_'")
    return name
