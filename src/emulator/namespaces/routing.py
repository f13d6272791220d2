"""Routes `/_ns/<name>/…` to the service of that namespace, on the same port (`operations.md`, Namespaces)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from litestar.enums import ScopeType
from litestar.types import HTTPScope, Receive, Scope, Send

from emulator.config.settings import Limits
from emulator.errors import EngineError, ServiceError, storage_failed
from emulator.http.front import HotPath, preflight_reply
from emulator.http.refusals import no_path
from emulator.http.response import error_reply
from emulator.journal import Entry
from emulator.namespaces.http import endpoints
from emulator.namespaces.registry import Registry, checked_name
from emulator.observability.request_context import bind_context, context_of, enter_namespace, label_of
from emulator.realtime.connection import Connection, Peer
from emulator.wire.url import SERVICE

_PREFIX: Final = "/_ns"
_NAMED: Final = "/_ns/{name}"
_ABOUT: Final = frozenset((each.method, each.path) for each in endpoints)
"""The methods and paths of the calls about namespaces, which the default namespace answers."""
_ADDRESS: Final = re.compile(r"/+_ns/+(?P<name>[^/]*)(?P<path>(?:/.*)?)", re.DOTALL)
_NESTED: Final = re.compile(r"/+_ns(?:/|$)")
"""Below a namespace, there are none."""
_log = logging.getLogger("emulator")


Creates = Callable[[Iterable[tuple[bytes, bytes]], str], bool]
"""Returns whether a request, with these headers and from this address, may create the namespace that it uses."""


class Namespaces:
    """An ASGI application that routes to the service of each namespace."""

    def __init__(self, registry: Registry, creates: Creates) -> None:
        """`creates` returns whether a request may create a namespace."""
        self._creates = creates
        self._registry = registry
        self._default = registry.default

    @property
    def limits(self) -> Limits:
        return self._default.limits

    @property
    def hot_path(self) -> HotPath | None:
        """The hot path of the default namespace."""
        return self._default.hot_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == ScopeType.HTTP
            and (found := split_namespace_path(scope["method"], scope["path"])) is not None
        ):
            await self._forward_request(*found, scope, receive, send)
        else:
            await self._default(scope, receive, send)

    async def _forward_request(self, name: str, path: str, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Pass the request to the service of a namespace."""
        context = bind_context(scope)
        try:
            context.namespace = label_of(checked_name(name))
            if _NESTED.match(path):
                raise no_path(path=path[:100], hint=f"the endpoints are under {SERVICE}")
            if scope["method"] == "OPTIONS" and not self._registry.is_open(name):  # the result would be the same
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

    async def _refuse(self, scope: HTTPScope, send: Send, error: ServiceError, *, cors: bool = False) -> None:
        reply = error_reply(error, cors=cors, shows_code=True)
        self._default.record_answer(context_of(scope), scope["method"], scope["path"], reply, error)
        await reply(send)

    def refused(self, error: ServiceError) -> None:
        """Count a request rejected before dispatch, in the default namespace."""
        self._default.refused(error)

    def record(self, path: str, entry: Callable[[str], Entry]) -> None:
        """Record a response that came from no endpoint in the journal of its namespace; without one, in `default`."""
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
        enter_namespace(checked_name(found["name"]))
        creates = self._creates(connection.headers, connection.address)
        front = await self._registry.front(found["name"], creates=creates)
        return await front.open_peer(found["path"], query, connection)

    def end_held(self) -> None:
        """End the requests that wait for an event, in all namespaces, because the service stops."""
        self._registry.end_held()


def split_namespace_path(method: str, path: str) -> tuple[str, str] | None:
    """Return the namespace of a request and the rest of its path; `None` for the default one.

    All paths below a name are routed, except those about the namespace itself (`http.endpoints`).
    """
    found = _ADDRESS.fullmatch(path) if _PREFIX in path else None
    if found is None:
        return None
    name, rest = found["name"], found["path"]
    is_about = rest in ("", "/") and (method, _NAMED if name else _PREFIX) in _ABOUT
    return None if is_about else (name, rest)
