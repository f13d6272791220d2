"""Transports that share the event loop fairly.

All writes to a connection in one iteration of the event loop leave in a single system call: uvicorn writes the head and
the body of a response separately, which would cost an extra system call and packet. Received bytes are handed over in
pieces, one per iteration, because a single read of 256 KiB may contain 40,000 messages.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final
from weakref import WeakKeyDictionary

_MAX_BUFFERED: Final = 64 * 1024
"""Bytes that are flushed at once: joining more would cost more than it saves."""
SHORT_PIECE: Final = 4 * 1024
"""Bytes handed to a protocol in one iteration of the event loop: up to 700 messages, or 200 requests."""
LONG_PIECE: Final = 16 * 1024
"""The same for the body of a request."""
_FLUSHED_AT_ONCE: Final = 250
"""Connections flushed in one iteration: a system call takes microseconds, and there may be 10,000."""


class FlushBatch:
    """The transports of an event loop with unflushed writes, flushed by one callback for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.call_soon = loop.call_soon
        self._waiting: list[CoalescingTransport] = []

    def join(self, transport: CoalescingTransport) -> None:
        """Flush `transport` at the end of this iteration."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(transport)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting[:_FLUSHED_AT_ONCE], self._waiting[_FLUSHED_AT_ONCE:]
        if self._waiting:
            self._loop.call_soon(self._flush)
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
    """Return a property that forwards to this method of the wrapped transport."""
    return property(attrgetter(f"_transport.{name}"))


class CoalescingTransport(asyncio.Transport):
    """A transport that buffers writes until the end of the loop iteration, or until it is closed.

    Its protocol passes received bytes to `hand_over`.
    """

    __slots__ = (
        "_batch", "_chunks", "_first", "_is_paused", "_is_scheduled", "_piece", "_rest", "_size", "_transport",
        "is_closing",
    )  # fmt: skip
    is_closing: Callable[[], bool]
    """The method of the wrapped transport. Each request calls it several times."""

    def __init__(self, transport: asyncio.Transport, batch: FlushBatch) -> None:
        super().__init__()
        self._transport = transport
        self.is_closing = transport.is_closing
        self._batch = batch
        self._first: bytes | bytearray | memoryview | None = None
        self._chunks: list[bytes | bytearray | memoryview] | None = None
        """All chunks including the first; `None` in the common case of a single write."""
        self._size = 0
        self._rest = b""
        """Bytes that were received and not yet handed over. Until they are, the wrapped transport does not read."""
        self._is_paused = False
        self._is_scheduled = False
        self._piece = SHORT_PIECE

    def hand_over(self, data: bytes, receive: Callable[[bytes], None], piece: int = SHORT_PIECE) -> None:
        """Call `receive` with the data, or if it is long, the protocol's `piece_received` with one piece at a time."""
        if self._rest or len(data) > piece:
            self._rest += data
            self._piece = piece
            self._transport.pause_reading()
            self._schedule()
        else:
            receive(data)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._batch.call_soon(self._hand_over_piece)

    def _hand_over_piece(self) -> None:
        self._is_scheduled = False
        if self._transport.is_closing():
            self._rest = b""
        if self._is_paused or not self._rest:
            return
        piece, self._rest = self._rest[: self._piece], self._rest[self._piece :]
        protocol: Any = self._transport.get_protocol()  # an upgrade may have changed it
        try:
            protocol.piece_received(piece)
        finally:
            if not (self._is_paused or self._transport.is_closing()):
                self.resume_reading()

    def pause_reading(self) -> None:
        """Stop handing over received bytes until `resume_reading`."""
        self._is_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Hand over the received bytes, then read more."""
        self._is_paused = False
        if self._rest:
            self._schedule()
        else:
            self._transport.resume_reading()

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

    def reset(self) -> None:
        """Close at once with RST, which discards unsent bytes."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def write_eof(self) -> None:
        """Flush, then end the stream."""
        self.flush()
        self._transport.write_eof()

    abort = _wrapped("abort")
    can_write_eof = _wrapped("can_write_eof")
    get_extra_info = _wrapped("get_extra_info")
    set_protocol = _wrapped("set_protocol")
    get_protocol = _wrapped("get_protocol")
    set_write_buffer_limits = _wrapped("set_write_buffer_limits")

    def get_write_buffer_size(self) -> int:
        """Return the number of unsent bytes, including bytes that are not flushed yet."""
        return self._transport.get_write_buffer_size() + self._size
