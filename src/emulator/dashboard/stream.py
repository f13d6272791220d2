"""The event stream of an open page: each of its regions again, whenever that has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import sha256

from emulator.core.clock import monotonic, processor_time
from emulator.core.errors import EngineError, ServiceError
from emulator.dashboard.screen import Service
from emulator.http.response import close_chunks

MIN_INTERVAL = 0.25
"""Seconds between two messages at least."""
_REST_FACTOR = 20
"""A page takes about a twentieth of the processor: after reading and rendering, it rests this many times as long."""
_MAX_REST = 1.0
_MANY_PAGES = 10
"""With more open pages than this, each rests longer, so that all together leave the processor to requests."""
GONE_EVENT = b"event: gone\ndata: \n\n"
"""Says that the namespace was dropped. A page that connected again would create it again."""
_KEEP_ALIVE_SECONDS = 15.0
"""Seconds without a message after which a comment is sent, so that a lost connection is noticed."""
_open_pages = 0
"""The open pages of all namespaces: they share the processor."""


async def screen_events(
    service: Service, period: float, read: Callable[[], Awaitable[Mapping[str, str]]], known: str
) -> AsyncIterator[bytes]:
    """Yield server-sent events with the regions that have changed.

    `read` returns them by the id of their element. The id of an event has their hashes, and `known` has the hashes of
    the page as it is.
    """
    yield b": connected\n\n"
    sent_at = monotonic()
    global _open_pages
    _open_pages += 1
    try:
        with service.changes.watching() as changed, service.journal.watching() as recorded:
            while True:
                changed.clear()
                recorded.clear()
                began, used, regions = monotonic(), processor_time(), dict[str, str]()
                with suppress(ServiceError, EngineError):  # the page stays as it is
                    regions = dict(await read())
                digests = {name: region_digest(name, text) for name, text in regions.items()}
                identifier, shown = ".".join(digests.values()), known.split(".")
                if regions and identifier != known:
                    known, sent_at = identifier, monotonic()
                    changes = [_patch(each, regions[each]) for each, digest in digests.items() if digest not in shown]
                    yield server_sent_event(identifier, "".join(changes))
                elif monotonic() - sent_at >= _KEEP_ALIVE_SECONDS:
                    sent_at = monotonic()
                    yield b": still here\n\n"
                rest = seconds_until_next_rendering(processor_time() - used, _open_pages)
                await asyncio.sleep(max(0.0, began + rest - monotonic()))
                await _wait_for_either(changed, recorded, period)
    finally:
        _open_pages -= 1


def _patch(name: str, text: str) -> str:
    """Return the event that updates an element of the page.

    Equal parts stay in place, with the reader's input and focus.
    """
    return f'<hx-partial hx-target="#{name}" hx-swap="innerMorph">{text}</hx-partial>'


def region_digest(name: str, content: str) -> str:
    """Return a short hash of a region of a page. Regions with equal content have different ones."""
    return sha256(f"{name}\n{content}".encode("utf-8", "replace")).hexdigest()[:16]


def seconds_until_next_rendering(used: float, pages: int) -> float:
    """Return the seconds from one rendering of a page to the next, with the processor time of one."""
    many = max(1.0, pages / _MANY_PAGES)
    return many * min(max(MIN_INTERVAL, _REST_FACTOR * used), _MAX_REST)


async def with_last_chunk(chunks: AsyncIterator[bytes], last: bytes) -> AsyncIterator[bytes]:
    """Yield the chunks, then the last chunk."""
    try:
        async for chunk in chunks:
            yield chunk
        yield last
    finally:
        await close_chunks(chunks)


def server_sent_event(identifier: str, text: str) -> bytes:
    """Return a server-sent event without a name."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = "".join(f"data: {line}\n" for line in plain.split("\n"))
    return f"id: {identifier}\n{lines}\n".encode("utf-8", "replace")


async def _wait_for_either(changed: asyncio.Event, recorded: asyncio.Event, timeout: float) -> None:
    """Wait until one of two events is set, at most `timeout` seconds."""
    waits = [asyncio.ensure_future(each.wait()) for each in (changed, recorded)]
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
