"""HTTP replies: status, headers and body (rulings W3, W4, W5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from html import escape
from types import AsyncGeneratorType

from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import Receive, Scope, Send

from emulator.core.errors import ServiceError
from emulator.core.observability.request_context import CODE
from emulator.core.wire import json_codec

JSON = b"application/json"
HTML = b"text/html"
PAGE_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"form-action 'self'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""The headers of every page."""
ALLOWED_HEADERS = ("Authorization", "Content-Type")
"""The headers that pages of any origin may send, besides those that need no permission (ruling W5)."""
CORS_HEADERS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", ", ".join(ALLOWED_HEADERS).encode()),
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE, OPTIONS"),
    (b"access-control-expose-headers", b"X-Request-Id, Retry-After"),
    (b"cross-origin-resource-policy", b"cross-origin"),  # for pages with Cross-Origin-Embedder-Policy
)
_PART_SIZE = 16 * 1024
"""Bytes of a body that are sent at once."""


@dataclass(slots=True)  # frozen would cost half a microsecond per reply
class Reply:
    """A reply that can be sent over ASGI."""

    status: int
    body: bytes | AsyncIterator[bytes]
    cors: bool = False
    """Whether web pages of any origin may read it. The dispatcher sets it for its endpoint."""
    content_type: bytes = JSON
    more: tuple[tuple[bytes, bytes], ...] = ()
    """Extra headers."""

    @property
    def content(self) -> bytes:
        """The body; empty for a stream."""
        return self.body if isinstance(self.body, bytes) else b""

    async def read_start(self, size: int) -> bytes:
        """Return the body; if it has over `size` bytes, a beginning that does too. The rest of a stream is dropped."""
        if isinstance(self.body, bytes):
            return self.body
        read = b""
        async for chunk in self.body:
            read += chunk
            if len(read) > size:
                break
        await close_chunks(self.body)
        return read

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """All headers except the content length. Text types have the charset added."""
        kind = self.content_type
        if kind.startswith(b"text/"):
            kind += b"; charset=utf-8"
        return ((b"content-type", kind), *(CORS_HEADERS if self.cors else ()), *self.more)

    @property
    def headers_by_name(self) -> dict[str, str]:
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.headers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. A large body goes in parts: the server waits between two while the client does not read.

        A stream ends when the client leaves.
        """
        body = self.body
        if not isinstance(body, bytes):
            try:
                streamed = ASGIStreamingResponse(iterator=body, headers=self.headers_by_name, status_code=self.status)
                await streamed(scope, receive, send)
            finally:
                await close_chunks(body)
            return
        headers = [*self.headers, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for start in range(0, len(body) or 1, _PART_SIZE):
            end = start + _PART_SIZE
            await send({"type": "http.response.body", "body": body[start:end], "more_body": end < len(body)})


def success_reply(answer: object, cors: bool, status: int, content_type: bytes) -> Reply:
    """Return the response to a successful call: bytes and streams of this type, any other value as JSON.

    A handler's own `Reply` keeps its status and type.
    """
    if isinstance(answer, Reply):
        answer.cors = cors
        return answer
    body = answer if isinstance(answer, (bytes, AsyncGeneratorType)) else json_codec.encode(answer)
    return Reply(status, body, cors, content_type)


def error_reply(error: ServiceError, *, cors: bool, shows_code: bool = False) -> Reply:
    """Return an error as JSON, with `Retry-After` if a retry may help, and in the sandbox with the refusal's code."""
    after = () if error.retry_after is None else ((b"retry-after", str(error.retry_after).encode()),)
    code = ((CODE, error.refused.code.encode()),) if shows_code and error.refused else ()
    return Reply(error.status, json_codec.error_body(error), cors, more=(*after, *code, *error.more))


def error_page(error: ServiceError) -> Reply:
    """Return an error for a browser: a page without style and script."""
    title = f"{error.status} {escape(error.reason)}"
    text = f"<h1>{title}</h1>\n<p>{escape(error.detail)}</p>"
    page = f'<!doctype html>\n<html lang="en">\n<title>{title}</title>\n<main>\n{text}\n</main>\n</html>\n'
    return Reply(error.status, page.encode("utf-8", "replace"), False, HTML, (*PAGE_HEADERS, *error.more))


async def in_one_chunk(body: bytes) -> AsyncIterator[bytes]:
    """Yield a complete body."""
    yield body


async def produce_first_chunk(chunks: AsyncIterator[bytes], is_admitted: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Produce the first chunk before the response begins, so that an early failure can still become an error reply.

    The response ends early, and stays incomplete, if its reader is no longer admitted.
    """

    async def first_and_rest() -> AsyncIterator[bytes]:
        try:
            first = await anext(chunks, b"")
            yield b""  # taken below, so that closing this closes `chunks`
            yield first
            async for chunk in chunks:
                await asyncio.sleep(0)  # a fast reader would otherwise keep all other requests waiting
                if not is_admitted():
                    return
                yield chunk
        finally:
            await close_chunks(chunks)

    resumed = first_and_rest()
    await anext(resumed)
    return resumed


async def close_chunks(chunks: AsyncIterator[bytes]) -> None:
    """Close a generator of chunks at once: garbage collection may do so much later."""
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
