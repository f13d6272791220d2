"""A request as the service reads it: its headers and its body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from litestar.types import HTTPScope, Receive

from emulator.http.refusals import body_cut_off, body_too_large
from emulator.observability.request_context import RequestContext

_SOON: Final = 0.2
"""Seconds that a refusal may be late in the sandbox, so that the journal has the body."""


@dataclass(slots=True, eq=False, repr=False)
class WholeRequest:
    """A request whose body has arrived."""

    context: RequestContext
    headers: Mapping[bytes, bytes]
    """By lower-case name; the last of duplicate headers."""
    query: bytes
    peer: str
    """The client's IP address; empty if unknown."""
    raw: bytes

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.raw)

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of the path that its endpoint declares in braces, by name."""
        return {}

    @property
    def scope(self) -> HTTPScope:
        """The ASGI scope, which such a request does not have."""
        raise TypeError("only a request from an ASGI server has a scope")

    async def body(self, limit: int) -> bytes:
        """Return the whole body; raises `TooLarge` above `limit` bytes (ruling W8)."""
        if len(self.raw) > limit:
            raise body_too_large(size=len(self.raw), limit=limit)
        return self.raw

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body, with the same limit."""
        yield await self.body(limit)


class AsgiRequest:
    """A request from an ASGI server, which reads the body when it is needed."""

    def __init__(self, scope: HTTPScope, receive: Receive, context: RequestContext) -> None:
        client: Any = scope.get("client")
        self.context = context
        self.headers: Mapping[bytes, bytes] = context.headers or dict(scope["headers"])
        self.query = scope["query_string"]
        self.peer: str = client[0] if client else ""
        self.scope = scope
        self.parts: Mapping[str, str] = scope.get("path_params") or {}
        self.raw = b""
        """The whole body, once it is read; empty if the endpoint streams it."""
        length = self.headers.get(b"content-length", b"")
        self.size = int(length) if length.isdigit() else 0
        """Bytes of the body: as declared, or as read."""
        self._is_unread = True
        self._receive = receive

    async def body(self, limit: int) -> bytes:
        """Return the whole body; raises `TooLarge` as soon as it is known to exceed `limit` bytes (ruling W8)."""
        self._check_content_length(limit)
        self._is_unread = False
        message: Any = await self._receive()
        if not message.get("more_body", True) and len(message["body"]) <= limit:  # the common case
            self.raw = message["body"]
            self.size = len(self.raw)
        else:
            self.raw = b"".join([chunk async for chunk in self._chunks(message, limit)])
        return self.raw

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body in chunks, with the same limit; raises `BadRequest` if the client leaves."""
        self._check_content_length(limit)
        self._is_unread = False
        async for chunk in self._chunks(await self._receive(), limit):
            yield chunk

    async def read_arrived(self) -> None:
        """Set `raw` to the part of an unread body that arrives soon. Clients often send it in a packet of its own."""
        if not self._is_unread or not self.size or b"expect" in self.headers:
            return
        step = asyncio.ensure_future(self._receive())
        await asyncio.wait([step], timeout=_SOON)
        if step.done():
            message: Any = step.result()
            self.raw = message.get("body", b"")
        step.cancel()

    def _check_content_length(self, limit: int) -> None:
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > limit:
            raise body_too_large(size=int(length), limit=limit)

    async def _chunks(self, message: Any, limit: int) -> AsyncIterator[bytes]:
        size = 0
        while True:
            if message["type"] == "http.disconnect":
                raise self.context.early_error or body_cut_off(size=size)
            chunk = message.get("body", b"")
            size += len(chunk)
            self.size = max(self.size, size)
            if size > limit:
                raise body_too_large(limit=limit)
            yield chunk
            if not message.get("more_body", False):
                return
            message = await self._receive()


Request = WholeRequest | AsgiRequest
