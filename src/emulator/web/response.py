"""What leaves: status, headers and body, and the one place where an error gets its body (rulings W3, W4, W5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from litestar.types import Send

from emulator.errors import ServiceError
from emulator.wire.errors import error_body

JSON = b"application/json"
CORS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"Authorization, Content-Type"),
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE, OPTIONS"),
    (b"access-control-expose-headers", b"X-Request-Id, Retry-After"),
)
_AS_TYPED = (b"x-content-type-options", b"nosniff")
_JSON_HEADERS = ((b"content-type", JSON),)
_OPEN_JSON_HEADERS = (*_JSON_HEADERS, *CORS)


@dataclass(slots=True)  # not frozen: that would cost each answer half a microsecond
class Reply:
    """An answer, ready for the wire."""

    status: int
    body: bytes | AsyncIterator[bytes]
    cors: bool
    content_type: bytes = JSON
    more: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of this answer alone."""

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Without the content length, which `send` adds where it is known."""
        if self.content_type is JSON:
            headers = _OPEN_JSON_HEADERS if self.cors else _JSON_HEADERS
            return (*headers, *self.more) if self.more else headers
        return ((b"content-type", self.content_type), _AS_TYPED, *(CORS if self.cors else ()), *self.more)

    async def __call__(self, send: Send) -> None:
        """Send it."""
        if isinstance(self.body, bytes):
            length = (b"content-length", str(len(self.body)).encode())
            await send(_start(self.status, [*self.headers, length]))
            await send({"type": "http.response.body", "body": self.body, "more_body": False})
            return
        await send(_start(self.status, list(self.headers)))
        async for chunk in self.body:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _start(status: int, headers: list[tuple[bytes, bytes]]) -> Any:
    return {"type": "http.response.start", "status": status, "headers": headers}


def error_reply(error: ServiceError, *, cors: bool) -> Reply:
    """The answer to a refused call."""
    after = () if error.retry_after is None else ((b"retry-after", str(error.retry_after).encode()),)
    return Reply(error.status, error_body(error), cors, more=after)
