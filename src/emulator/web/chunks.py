"""Bodies in chunks: of streamed requests and of streamed answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator


async def in_one_chunk(body: bytes) -> AsyncIterator[bytes]:
    """Yield a complete body."""
    yield body


async def with_first_chunk(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Produce the first chunk now, so that an early failure still gets an error reply."""

    async def begun() -> AsyncIterator[bytes]:
        try:
            first = await anext(chunks, b"")
            yield b""  # taken below, so that closing this closes `chunks`
            yield first
            async for chunk in chunks:
                await asyncio.sleep(0)  # a fast reader would otherwise keep all other requests waiting
                yield chunk
        finally:
            await close_chunks(chunks)

    resumed = begun()
    await anext(resumed)
    return resumed


async def close_chunks(chunks: AsyncIterator[bytes]) -> None:
    """Close a generator of chunks at once: garbage collection may do so much later."""
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
