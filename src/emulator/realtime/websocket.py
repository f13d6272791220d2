"""A WebSocket connection: handshake, frames and close. A `Peer` handles the messages.

It runs the `websockets` library's protocol on uvicorn's transport. An idle connection has no task and no timer, and a
frame for many connections is serialized once, so that a node can hold many thousands (docs/decisions/0005).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol, cast

from uvicorn.server import ServerState
from websockets.frames import DATA_OPCODES, CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State

from emulator.core.errors import EngineError, RequestTimeout, ServiceError, internal_error, storage_failed
from emulator.core.faults import RESET, STALL, FaultHit, NoResponse, Pause
from emulator.core.observability.entries import Unrouted
from emulator.core.observability.request_context import RequestContext, current_request, in_context
from emulator.core.settings import Limits
from emulator.core.wire.transports import end_writing, reset_connection
from emulator.realtime import closes
from emulator.realtime.connection import PING, Peer, text_frame
from emulator.realtime.envelope import SMALL
from emulator.realtime.handshake import Handshake, HandshakeProtocol

_log = logging.getLogger("emulator.socket")
CLOSE_TIMEOUT = 2.0
"""Seconds that the client has to answer a close before the connection is aborted."""
_LIMIT_CLOSE_CODES = (CloseCode.MESSAGE_TOO_BIG, CloseCode.TRY_AGAIN_LATER)
"""Close codes that enforce a limit, which the metrics count."""
_MAX_FRAMES = 4_096
"""Frames of one message, with the control frames between them: each costs as much as a small message."""
_MAX_CONTROLS = 512
"""Control frames between messages in one read, after which others run. The event loop may read 32 times in a pass."""
_MESSAGE_PINGS, _MESSAGE_SECONDS = 3, 60
"""Pings within which a message must arrive, and the seconds they take."""
_USUAL_CLOSE_CODES = (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY)
_library_log = logging.getLogger("emulator.socket.library")
_library_log.setLevel(logging.CRITICAL)  # do not log clients' protocol errors


class PeerFactory(Protocol):
    """The application that connections belong to."""

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        """Return the peer of a connection to `path`. Raises `ServiceError` and `EngineError`."""

    def count_refusal(self, error: ServiceError) -> None:
        """Count an error that occurred before a peer was involved."""

    def record(self, request: Unrouted) -> None:
        """Record a response that came from no endpoint in the journal of the path's namespace."""


class WebSocket(asyncio.Protocol):
    """One WebSocket. uvicorn creates it from an upgrade request."""

    def __init__(
        self, factory: PeerFactory, limits: Limits, *, server_state: ServerState, config: object, app_state: object
    ) -> None:
        self._factory = factory
        self._limits = limits
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
        self._protocol = HandshakeProtocol(max_size=min(SMALL, self._limits.frame), logger=_library_log)
        self._transport: asyncio.Transport
        self._peer: Peer | None = None
        self._opening: asyncio.Task[None] | None = None
        self._pause: Pause | None = None
        """The wait of a handshake that gets no response."""
        self._message = bytearray()
        """The part of a message that has arrived."""
        self._frames = 0
        """Frames since the message began; 0 between messages."""
        self._controls = 0
        """Control frames between messages, in the latest read."""
        self._pings = 0
        """Pings since the latest complete message, or control frame between messages."""
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
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclasses of asyncio's
        self._transport.set_write_buffer_limits(self._limits.outbox)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._alive = True
        self._controls = 0
        if self.on_bytes is not None:
            self.on_bytes(len(data))
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._answer_handshake(event)
            elif isinstance(event, Frame):
                self._receive_frame(event)
        self._flush()
        if self._controls > _MAX_CONTROLS and not self._transport.is_closing():
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._resume_reading)

    def pause_writing(self) -> None:
        """Close with code 1013, because the client has left more bytes unread than the outbox may hold."""
        self.close(closes.unread(limit=self._limits.outbox))
        self._overflowed = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        self._connections.discard(self)
        if self._abort_timer:
            self._abort_timer.cancel()
        if self._pause:
            self._pause.release()
        if self._peer:
            self._peer.on_close()
            self._peer = None  # it refers to this connection: so both are freed at once
        self._protocol.parser.close()  # it refers to the protocol

    def shutdown(self) -> None:
        """Close the connection because the server stops."""
        if self._peer:
            self._peer.on_service_stop()
        else:
            self._transport.close()

    # Called by peers

    def send(self, text: bytes) -> None:
        self.write(text_frame(text))

    def write(self, frame: bytes) -> None:
        """Queue a serialized frame without blocking; closes (1013) if the outbox overflows (ruling B4)."""
        if self._is_open:
            if not self._transport.is_closing():
                self._transport.write(frame)
        elif self._held is not None:
            self._held += frame
            if self.unread > self._limits.outbox:
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
        self._resume_reading()

    def _resume_reading(self) -> None:
        if not (self._paused or self._held is not None or self._transport.is_closing()):
            self._transport.resume_reading()

    @property
    def unread(self) -> int:
        """Bytes written for the client that the system has not taken yet."""
        return len(self._held or b"") + self._transport.get_write_buffer_size()

    @property
    def is_reachable(self) -> bool:
        """Whether the connection is open or stalled, and the outbox has not overflowed."""
        return (self._is_open or self._held is not None) and self.unread <= self._limits.outbox

    def has_room(self, more: int = 0) -> bool:
        """Whether the unread bytes and `more` fill less than half of the outbox."""
        return self.unread + more < self._limits.outbox // 2

    @property
    def is_stalled(self) -> bool:
        return self._held is not None

    def stall(self) -> None:
        """Stop reading and writing until `release` or `close`, as on a dead network. No effect if it is closed."""
        if self._protocol.state is State.OPEN and self._held is None:
            self._held, self._is_open = bytearray(), False
            self._transport.pause_reading()

    def release(self) -> None:
        """End a stall: write the frames that were held back, and read again. No effect without a stall."""
        held, self._held = self._held, None
        if held is None or self._transport.is_closing():
            return
        self._is_open, self._alive = self._protocol.state is State.OPEN, True
        if held:
            self._transport.write(held)
        self._resume_reading()

    def reset(self) -> None:
        """Close at once with RST, as a failing network does."""
        reset_connection(self._transport)

    def allow_large_messages(self) -> None:
        """Accept messages up to the frame limit. Before this call the limit is 4 KiB (ruling X3)."""
        self._protocol.max_message_size = self._limits.frame

    def ping(self) -> None:
        """Ping the client, or abort the connection if nothing was received since the last ping."""
        if self._paused or self._held is not None:
            return  # while reading is paused, silence proves nothing
        if not self._alive:
            self._transport.abort()
            return
        self._alive = False
        self._pings += 1
        if self._pings >= _MESSAGE_PINGS:
            self.close(closes.late_message(seconds=_MESSAGE_SECONDS))
        self.write(PING)

    def _answer_handshake(self, request: Request) -> None:
        handshake = Handshake(request)
        self.request_id, self.headers = handshake.id, handshake.headers
        response = self._protocol.accept(request)
        response.headers["X-Request-Id"] = self.request_id
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self._opening = asyncio.get_running_loop().create_task(self._open_peer(handshake, response))
        else:
            context = RequestContext(self.request_id)
            with in_context(context):
                self._factory.record(handshake.log_response(response, context))
            self._protocol.send_response(response)

    async def _open_peer(self, handshake: Handshake, response: Response) -> None:
        """Open the peer, then complete the handshake with `response`, unless the peer refuses it."""
        current_request.set(context := RequestContext(self.request_id))
        refusal: ServiceError | None = None
        try:
            self._peer = await self._factory.open_peer(handshake.path, handshake.query, self)
            if self.mark:
                response.headers["X-Emulator-Mark"] = str(self.mark)
        except ServiceError as error:
            refusal = error
        except EngineError as error:
            _log.error("storage failed while opening %s: %s", handshake.path[:100], error)
            refusal = storage_failed()
        except Exception:
            _log.exception("unexpected failure while opening %s", handshake.path[:100])
            refusal = internal_error()
        if refusal is not None:
            response = handshake.refusal(refusal)
        self._opening, self.headers = None, []
        if context.fault:
            response.headers["X-Emulator-Fault"] = context.fault
        context.socket = self._peer.number if self._peer else 0
        self._factory.record(handshake.log_response(response, context, refusal))
        if isinstance(refusal, NoResponse):
            await self._stay_silent(refusal.hit)
            return
        if self._transport.is_closing():
            if self._peer:
                self._peer.on_close()
            return
        self._protocol.send_response(response)
        self._flush()
        if self._peer:
            self._peer.on_open()

    async def _stay_silent(self, hit: FaultHit) -> None:
        """End the connection without a response. A stall lasts until the client leaves or the fault is removed."""
        if hit.fault.effect == RESET:
            reset_connection(self._transport)
            return
        if hit.fault.effect == STALL:
            self._pause = hit.pause()
            if not self._transport.is_closing():
                await self._pause.wait()
        self._transport.close()

    def _receive_frame(self, frame: Frame) -> None:
        """Add a frame to its message; hand over the message when it is complete."""
        if self._peer is None or self._error is not None:
            return  # received before the handshake was complete, or after the service closed the connection
        is_data = frame.opcode in DATA_OPCODES
        if not is_data and not self._frames:
            self._pings = 0
            self._controls += 1
            return
        if is_data:
            self._message += frame.data
            if frame.opcode is not Opcode.CONT:
                self._binary = frame.opcode is Opcode.BINARY
        if not (is_data and frame.fin):
            self._frames += 1
            if self._frames >= _MAX_FRAMES:
                self._fail_connection(closes.too_many_frames(limit=_MAX_FRAMES))
            return
        self._frames = self._pings = 0
        message, self._message = bytes(self._message), bytearray()
        if self._binary:
            self._peer.on_message(None)
            return
        try:
            message.decode()
        except UnicodeDecodeError:
            self._fail_connection(closes.not_utf8())
        else:
            self._peer.on_message(message)

    def _fail_connection(self, error: ServiceError) -> None:
        self._error = error
        self._protocol.fail(error.close_code, error.detail)

    def _flush(self) -> None:
        """Write the protocol's pending output, and start the close timeout once a close has begun."""
        self._is_open = self._protocol.state is State.OPEN and self._held is None
        ends = self._protocol.close_expected()
        data = self._protocol.data_to_send()
        frames = [each for each in data if each]
        # After an overflow only pongs remain, to a client that does not read.
        if frames and not (self._overflowed or self._transport.is_closing()):
            self._transport.write(b"".join(frames))  # at once: there may be a thousand pongs
        if len(frames) < len(data):
            end_writing(self._transport, expects_more=self._protocol.close_rcvd is None)
            ends = True
        if ends and self._abort_timer is None:
            sent = self._protocol.close_sent
            if sent is not None and not self._protocol.close_rcvd_then_sent:
                limit = self._protocol.max_message_size or 0
                self._report_close(self._error or closes.library_close(sent.code, sent.reason, limit))
            self._abort_timer = asyncio.get_running_loop().call_later(CLOSE_TIMEOUT, self._transport.abort)

    def _report_close(self, error: ServiceError) -> None:
        """Report to the peer that the service closed the connection, unless the close is a usual one."""
        if error.close_code in _LIMIT_CLOSE_CODES or isinstance(error, RequestTimeout):
            self._factory.count_refusal(error)
        if error.close_code not in _USUAL_CLOSE_CODES and self._peer:
            self._peer.on_refusal(error)
