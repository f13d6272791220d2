"""What is written on a connection in one turn of the event loop leaves in one piece.

uvicorn writes the head of an answer and its body apart, which costs a system call and a packet more than needed.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from weakref import WeakKeyDictionary

_LARGEST_GATHERED: Final = 64 * 1024
"""Bytes of one connection that are not kept until the turn is over: joining them would cost more than it saves."""


class FlushBatch:
    """The connections of an event loop on which something was written in this turn.

    One callback hands on what all of them have: one for each would be a good part of what telling thousands costs.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[CoalescingTransport] = []

    def join(self, transport: CoalescingTransport) -> None:
        """Have `transport` hand on what it has when the turn is over."""
        if not self._waiting:
            self._loop.call_soon(self._end)
        self._waiting.append(transport)

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        for transport in waiting:
            try:
                transport.flush()
            except Exception as error:  # one connection's failure is not to be another's
                context = {"message": "a connection could not be written to", "exception": error}
                self._loop.call_exception_handler(context)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, FlushBatch] = WeakKeyDictionary()


def flush_batch_of(loop: asyncio.AbstractEventLoop) -> FlushBatch:
    """The one of this event loop."""
    turn = _turns.get(loop)
    if turn is None:
        turn = _turns[loop] = FlushBatch(loop)
    return turn


class CoalescingTransport(asyncio.Transport):
    """A transport that hands on what was written when the turn is over, or when it is to be closed."""

    __slots__ = ("_more", "_size", "_transport", "_turn", "_written")

    def __init__(self, transport: asyncio.Transport, turn: FlushBatch) -> None:
        super().__init__()
        self._transport = transport
        self._turn = turn
        self._written: bytes | bytearray | memoryview | None = None
        self._more: list[bytes | bytearray | memoryview] | None = None
        """All pieces, where there is more than the first, which most often stands alone."""
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep `data` until the turn is over."""
        if self._written is None:
            self._written = data
            self._turn.join(self)
        elif self._more is None:
            self._more = [self._written, data]
        else:
            self._more.append(data)
        self._size += len(data)
        if self._size > _LARGEST_GATHERED:
            self.flush()

    def flush(self) -> None:
        """Hand on what was written, before the turn is over."""
        written, more = self._written, self._more
        if written is None:
            return
        self._written = self._more = None
        self._size = 0
        if not self._transport.is_closing():
            self._transport.write(written if more is None else b"".join(more))

    def close(self) -> None:
        """Close behind what was written."""
        self.flush()
        self._transport.close()

    def write_eof(self) -> None:
        """End the stream behind what was written."""
        self.flush()
        self._transport.write_eof()

    def is_closing(self) -> bool:
        """Whether no more can be written."""
        return self._transport.is_closing()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def can_write_eof(self) -> bool:
        """Whether the stream can be ended one way."""
        return self._transport.can_write_eof()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the transport below knows of the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Take no more from the other side for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take from the other side again."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Give the connection to another protocol, which writes through this transport too."""
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol that reads."""
        return self._transport.get_protocol()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """When writers are told to pause, and when to go on."""
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Bytes that wait for the other side."""
        return self._transport.get_write_buffer_size() + self._size
