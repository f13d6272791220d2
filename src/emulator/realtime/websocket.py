"""A WebSocket connection: handshake, frames and close. A `Peer` handles the messages.

It runs the `websockets` library's protocol on uvicorn's transport. An idle connection has no task and no timer, and a
frame for many connections is serialized once, so that a node can hold many thousands (docs/decisions/0005).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import uvicorn
from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from emulator.clock import monotonic
from emulator.errors import EngineError, ServiceError, storage_failed
from emulator.faults import RESET, STALL, Hit, NoResponse, Pause
from emulator.observability.entries import unrouted_entry
from emulator.observability.logs import log_request
from emulator.observability.request_context import RequestContext, bound_to, current_request, request_id
from emulator.realtime import closes
from emulator.realtime.connection import PING, Connection, Peer, PeerFactory, text_frame
from emulator.realtime.envelope import SMALL
from emulator.wire.coalescing_transport import CoalescingTransport
from emulator.wire.json_codec import error_body

_log = logging.getLogger("emulator.socket")
CLOSE_TIMEOUT = 2.0
"""Seconds that the client has to answer a close before the connection is aborted."""
_LIMIT_CLOSES = (CloseCode.MESSAGE_TOO_BIG, CloseCode.TRY_AGAIN_LATER)
"""Close codes that enforce a limit, which the metrics count."""
_USUAL_CLOSES = (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY)
_library_log = logging.getLogger("emulator.socket.library")
_library_log.setLevel(logging.CRITICAL)  # do not log clients' protocol errors


class Handshake:
    """One upgrade request, from its arrival to its response."""

    def __init__(self, request: Request, factory: PeerFactory) -> None:
        self._factory = factory
        self._started = monotonic()
        path, _, self._query = request.path.partition("?")
        self._path = unquote(path)
        self.headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.raw_items()]
        self.id = request_id(dict(self.headers))

    async def open_peer(self, connection: Connection) -> Peer:
        """Return the peer that handles the messages of the new connection. Raises `ServiceError`."""
        try:
            return await self._factory.open_peer(self._path, self._query, connection)
        except EngineError as error:
            _log.error("storage failed in opening %s: %s", self._path[:100], error)
            raise storage_failed() from None

    def refusal(self, error: ServiceError) -> Response:
        """Return the response that refuses the handshake, and closes the connection."""
        body = error_body(error)
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
        headers["X-Request-Id"] = self.id
        headers["X-Content-Type-Options"] = "nosniff"
        if error.retry_after is not None:
            headers["Retry-After"] = str(error.retry_after)
        return Response(error.status, error.title, headers, body)

    def record(
        self, response: Response, error: ServiceError | None = None, *, socket: int = 0, fault: str = ""
    ) -> None:
        """Add the handshake's response to the journal, and log a refusal.

        (An accepted connection logs its requests instead.) `socket` is the peer's number, or 0 without a peer. `fault`
        is the header that names the faults which acted.
        """
        status, body, seconds = response.status_code, bytes(response.body or b""), monotonic() - self._started
        if status != HTTPStatus.SWITCHING_PROTOCOLS:
            log_request({"action": "socket handshake"}, status, seconds, len(body), None)
        self._factory.record(
            self._path,
            partial(
                unrouted_entry,
                id=self.id,
                method="GET",
                query=self._query.encode(),
                status=status,
                seconds=seconds,
                answer=body,
                error=error,
                socket=socket,
                fault=fault,
            ),
        )


class WebSocket(asyncio.Protocol):
    """One WebSocket. uvicorn creates it from an upgrade request."""

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], _loop: object = None
    ) -> None:
        factory: Any = config.app
        self._factory: PeerFactory = factory
        self._max_outbox: int = self._factory.limits.outbox
        self._connections: set[Any] = server_state.connections
        self.request_id = ""
        """The id of the handshake request."""
        self.address = ""
        """The client's network address, as a trusted proxy gives it; empty if unknown."""
        self.headers: list[tuple[bytes, bytes]] = []
        """The headers of the handshake, until the peer is found."""
        self.on_bytes: Callable[[int], None] | None = None
        """Called with the size of received data, until authentication."""
        self.mark = 0
        """The mark of the latest change, for the response to the handshake; 0 in production."""
        self._protocol = ServerProtocol(max_size=min(SMALL, self._factory.limits.frame), logger=_library_log)
        self._transport: CoalescingTransport
        self._peer: Peer | None = None
        self._opening: asyncio.Task[None] | None = None
        self._pause: Pause | None = None
        """The wait of a handshake that gets no response."""
        self._fragments: list[bytes] = []
        self._binary = False
        self._is_open = False
        """Whether frames may be written. Cached, because asking the protocol costs more than the write."""
        self._alive = True
        """Whether anything was received since the last ping."""
        self._paused = False
        self._held: bytearray | None = None
        """Bytes to write when a stall ends; `None` while the connection is not stalled."""
        self._error: ServiceError | None = None
        """Why the service closed the connection; `None` while it is open, and if the library closed it."""
        self._overflowed = False
        self._abort_timer: asyncio.TimerHandle | None = None

    # Called by uvicorn and the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the transport of the upgrade request."""
        assert isinstance(transport, CoalescingTransport)
        self._transport = transport
        client = transport.get_extra_info("peername")
        self.address = client[0] if isinstance(client, tuple) else ""
        transport.set_write_buffer_limits(self._max_outbox)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._transport.hand_over(data, self.piece_received)

    def piece_received(self, data: bytes) -> None:
        """Parse a chunk of received bytes."""
        self._alive = True
        if self.on_bytes is not None:
            self.on_bytes(len(data))
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._shake_hands(event)
            elif isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._receive_frame(event)
        self._flush()

    def pause_writing(self) -> None:
        """Close with code 1013, because the client has left more bytes unread than the outbox may hold."""
        self.close(closes.unread(limit=self._max_outbox))
        self._overflowed = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        self._connections.discard(self)
        if self._abort_timer:
            self._abort_timer.cancel()
        if self._pause:
            self._pause.release()
        if self._peer:
            self._peer.closed()
            self._peer = None  # it refers to this connection: so both are freed at once

    def shutdown(self) -> None:
        """Close the connection because the server stops."""
        if self._peer:
            self._peer.going_away()
        else:
            self._transport.close()

    # Called by peers

    def send(self, text: bytes) -> None:
        self.write(text_frame(text))

    def write(self, frame: bytes) -> None:
        """Queue a serialized frame without blocking; closes (1013) if the outbox overflows (ruling B4)."""
        if self._is_open:
            self._transport.write(frame)
        elif self._held is not None:
            self._held += frame
            if self.unread > self._max_outbox:
                self.pause_writing()

    def close(self, error: ServiceError) -> None:
        """Close after the queued frames, even if stalled; a second call has no effect."""
        self.release()
        if self._protocol.state is State.OPEN:
            self._error = error
            self._protocol.send_close(error.close_code, error.detail)
            self._flush()
            self._transport.resume_reading()  # to receive the client's close frame

    def pause(self) -> None:
        self._paused = True
        self._transport.pause_reading()

    def resume(self) -> None:
        self._paused, self._alive = False, True
        if self._held is None and not self._transport.is_closing():
            self._transport.resume_reading()

    @property
    def unread(self) -> int:
        """Bytes written for the client that the system has not taken yet."""
        return len(self._held or b"") + self._transport.get_write_buffer_size()

    @property
    def is_reachable(self) -> bool:
        """Whether the connection is open or stalled, and the outbox has not overflowed."""
        return (self._is_open or self._held is not None) and self.unread <= self._max_outbox

    @property
    def is_stalled(self) -> bool:
        return self._held is not None

    def stall(self) -> None:
        """Stop reading and writing until `release` or `close`, as on a dead network.

        Has no effect on a closed connection.
        """
        if self._protocol.state is State.OPEN and self._held is None:
            self._held, self._is_open = bytearray(), False
            self._transport.pause_reading()

    def release(self) -> None:
        """End a stall: write the frames that were held back, and read again.

        Has no effect on a connection that is not stalled.
        """
        held, self._held = self._held, None
        if held is None or self._transport.is_closing():
            return
        self._is_open, self._alive = self._protocol.state is State.OPEN, True
        if held:
            self._transport.write(held)
        if not self._paused:
            self._transport.resume_reading()

    def reset(self) -> None:
        """Close at once with RST, as a failing network does."""
        self._transport.reset()

    def allow_large_messages(self) -> None:
        """Accept messages up to the frame limit. Before this call the limit is 4 KiB (ruling X3)."""
        self._protocol.max_message_size = self._factory.limits.frame

    def ping(self) -> None:
        """Ping the client, or abort the connection if nothing was received since the last ping."""
        if self._paused or self._held is not None:
            return  # while reading is paused, silence proves nothing
        if not self._alive:
            self._transport.abort()
            return
        self._alive = False
        self.write(PING)

    def _shake_hands(self, request: Request) -> None:
        handshake = Handshake(request, self._factory)
        self.request_id, self.headers = handshake.id, handshake.headers
        response = self._protocol.accept(request)
        response.headers["X-Request-Id"] = self.request_id
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self._opening = asyncio.get_running_loop().create_task(self._open(handshake, response))
        else:
            with bound_to(RequestContext(self.request_id)):
                handshake.record(response)
            self._protocol.send_response(response)

    async def _open(self, handshake: Handshake, response: Response) -> None:
        """Open the peer, then complete the handshake with `response`, unless the peer refuses it."""
        current_request.set(context := RequestContext(self.request_id))
        refusal: ServiceError | None = None
        try:
            self._peer = await handshake.open_peer(self)
            if self.mark:
                response.headers["X-Emulator-Mark"] = str(self.mark)
        except ServiceError as error:
            refusal, response = error, handshake.refusal(error)
        self._opening, self.headers = None, []
        if context.fault:
            response.headers["X-Emulator-Fault"] = context.fault
        number = self._peer.number if self._peer else 0
        handshake.record(response, refusal, socket=number, fault=context.fault)
        if isinstance(refusal, NoResponse):
            await self._stay_silent(refusal.hit)
            return
        if self._transport.is_closing():
            if self._peer:
                self._peer.closed()
            return
        self._protocol.send_response(response)
        self._flush()
        if self._peer:
            self._peer.opened()

    async def _stay_silent(self, hit: Hit) -> None:
        """End the connection without a response. A stall lasts until the client leaves or the fault is removed."""
        if hit.effect == RESET:
            self._transport.reset()
            return
        if hit.effect == STALL:
            self._pause = hit.pause()
            if not self._transport.is_closing():
                await self._pause.wait()
        self._transport.close()

    def _receive_frame(self, frame: Frame) -> None:
        """Add a frame to its message; hand over the message when it is complete."""
        if self._peer is None:
            return  # received before the handshake was complete
        if frame.opcode is not Opcode.CONT:
            self._binary = frame.opcode is Opcode.BINARY
        if frame.data:  # empty frames do not count toward the message limit, so do not store them
            self._fragments.append(bytes(frame.data))
        if not frame.fin:
            return
        message, self._fragments = b"".join(self._fragments), []
        if self._binary:
            self._peer.received(None)
        elif message.isascii() or _is_utf8(message):
            self._peer.received(message)
        else:
            self._error = error = closes.not_utf8()
            self._protocol.fail(error.close_code, error.detail)

    def _flush(self) -> None:
        """Write the protocol's pending output, and start the close timeout once a close has begun."""
        self._is_open = self._protocol.state is State.OPEN and self._held is None
        ends = self._protocol.close_expected()
        for data in self._protocol.data_to_send():
            if data and not self._overflowed:  # after an overflow only pongs remain, to a client that does not read
                self._transport.write(data)
            elif not data:
                # Close only the sending side and discard further input: closing both would reset the connection, and
                # the client might never read the close frame.
                self._transport.write_eof()
                ends = True
        if ends and self._abort_timer is None:
            sent = self._protocol.close_sent
            if sent is not None and not self._protocol.close_rcvd_then_sent:
                limit = self._protocol.max_message_size or 0
                self._refused(self._error or closes.of_protocol(sent.code, sent.reason, limit))
            self._abort_timer = asyncio.get_running_loop().call_later(CLOSE_TIMEOUT, self._transport.abort)

    def _refused(self, error: ServiceError) -> None:
        """Report to the peer that the service closed the connection, unless the close is a usual one."""
        if error.close_code in _LIMIT_CLOSES:
            self._factory.refused(error)
        if error.close_code not in _USUAL_CLOSES and self._peer:
            self._peer.refused(error)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
