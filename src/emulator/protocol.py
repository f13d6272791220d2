"""HTTP on the wire is uvicorn's; what it writes in one turn of the event loop leaves in one piece.

uvicorn writes the head of an answer and its body apart, which costs a system call and a packet more than needed.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emulator.errands import REQUEST_ID, Errand, entrust, request_id
from emulator.errors import BadRequest, HeadTooLarge, ServiceError
from emulator.web.reply import error_body

_LARGEST_GATHERED: Final = 64 * 1024
"""Bytes of one connection that are not kept until the turn is over: joining them would cost more than it saves."""


class Turn:
    """The connections of an event loop on which something was written in this turn.

    One callback hands on what all of them have: one for each would be a good part of what telling thousands costs.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Gathering] = []

    def join(self, transport: Gathering) -> None:
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


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turn] = WeakKeyDictionary()


def turn_of(loop: asyncio.AbstractEventLoop) -> Turn:
    """The one of this event loop."""
    turn = _turns.get(loop)
    if turn is None:
        turn = _turns[loop] = Turn(loop)
    return turn


class Gathering(asyncio.Transport):
    """A transport that hands on what was written when the turn is over, or when it is to be closed."""

    __slots__ = ("_more", "_size", "_transport", "_turn", "_written")

    def __init__(self, transport: asyncio.Transport, turn: Turn) -> None:
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


LARGEST_HEAD = 64 * 1024
"""Bytes of a request line with its headers. uvicorn sets no limit, and copies a header anew with every piece of it."""


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP on a transport that gathers, with a limit to what may come before a body."""

    _in_head = True
    _head = 0
    _ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection."""
        # uvloop's transports do all that asyncio's do without being their subclasses.
        super().connection_made(Gathering(cast("asyncio.Transport", transport), turn_of(self.loop)))

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self.transport.is_closing():
            return
        self._ended = False
        super().data_received(data)
        if self._in_head and not self._ended:  # a head that begins behind an end is counted from the next piece on
            self._head += len(data)
            if self._head > LARGEST_HEAD and not self.transport.is_closing():
                self._refuse(HeadTooLarge("Headers too large", f"headers: at most {LARGEST_HEAD} bytes are taken"))

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._in_head = False
        errand = Errand(request_id(self.headers))
        entrust(self.scope["state"], errand)
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.scope is self.scope:  # else it is to become a WebSocket
            self.cycle.default_headers = [*self.cycle.default_headers, (REQUEST_ID, errand.id.encode())]

    def on_message_complete(self) -> None:
        """The next request begins."""
        super().on_message_complete()
        self._in_head, self._head, self._ended = True, 0, True

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP like any other refusal (ruling W4), and hang up."""
        self._refuse(BadRequest("Bad Request", "this cannot be read as an HTTP request"))

    def _request_id(self) -> str:
        """That of the request at fault, as far as it has come."""
        is_former = self._in_head and self.cycle is not None and self.cycle.scope is self.scope
        return request_id(() if is_former else self.headers or ())

    def _refuse(self, error: ServiceError) -> None:
        body = error_body(error)
        head = (
            f"HTTP/1.1 {error.status} {error.title}\r\n"
            "content-type: application/json\r\naccess-control-allow-origin: *\r\n"
            f"x-request-id: {self._request_id()}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
