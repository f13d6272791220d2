"""Write coalescing: all writes to a connection in one event loop iteration leave in a single system call.

uvicorn writes the head and the body of a response separately, which would cost an extra system call and packet.
"""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import Any, Final
from weakref import WeakKeyDictionary

_MAX_BUFFERED: Final = 64 * 1024
"""Bytes that are flushed at once: joining more would cost more than it saves."""


class FlushBatch:
    """The transports of an event loop with unflushed writes, flushed by one callback for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[CoalescingTransport] = []

    def join(self, transport: CoalescingTransport) -> None:
        """Flush `transport` at the end of this iteration."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(transport)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for transport in waiting:
            try:
                transport.flush()
            except Exception as error:  # must not affect other connections
                context = {"message": "writing to a connection failed", "exception": error}
                self._loop.call_exception_handler(context)


_batches: WeakKeyDictionary[asyncio.AbstractEventLoop, FlushBatch] = WeakKeyDictionary()


def flush_batch_of(loop: asyncio.AbstractEventLoop) -> FlushBatch:
    """The flush batch of an event loop."""
    batch = _batches.get(loop)
    if batch is None:
        batch = _batches[loop] = FlushBatch(loop)
    return batch


def _wrapped(name: str) -> Any:
    """Return a property that is this method of the wrapped transport."""
    return property(attrgetter(f"_transport.{name}"))


class CoalescingTransport(asyncio.Transport):
    """A transport that buffers writes until the end of the loop iteration, or until it is closed."""

    __slots__ = ("_batch", "_chunks", "_first", "_size", "_transport")

    def __init__(self, transport: asyncio.Transport, batch: FlushBatch) -> None:
        super().__init__()
        self._transport = transport
        self._batch = batch
        self._first: bytes | bytearray | memoryview | None = None
        self._chunks: list[bytes | bytearray | memoryview] | None = None
        """All chunks including the first; `None` in the common case of a single write."""
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Buffer `data` until the end of the iteration."""
        if self._first is None:
            self._first = data
            self._batch.join(self)
        elif self._chunks is None:
            self._chunks = [self._first, data]
        else:
            self._chunks.append(data)
        self._size += len(data)
        if self._size > _MAX_BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write the buffer to the wrapped transport now."""
        written, more = self._first, self._chunks
        if written is None:
            return
        self._first = self._chunks = None
        self._size = 0
        if not self._transport.is_closing():
            self._transport.write(written if more is None else b"".join(more))

    def close(self) -> None:
        """Flush, then close."""
        self.flush()
        self._transport.close()

    def write_eof(self) -> None:
        """Flush, then end the stream."""
        self.flush()
        self._transport.write_eof()

    def is_closing(self) -> bool:  # called several times per request, so not by `_wrapped`
        return self._transport.is_closing()

    abort = _wrapped("abort")
    can_write_eof = _wrapped("can_write_eof")
    get_extra_info = _wrapped("get_extra_info")
    pause_reading = _wrapped("pause_reading")
    resume_reading = _wrapped("resume_reading")
    set_protocol = _wrapped("set_protocol")
    get_protocol = _wrapped("get_protocol")
    set_write_buffer_limits = _wrapped("set_write_buffer_limits")

    def get_write_buffer_size(self) -> int:
        """Unsent bytes, including those not yet flushed."""
        return self._transport.get_write_buffer_size() + self._size
