"""One WebSocket on the wire: its handshake, its frames and its end. What is said on it is left to a `Peer`.

The library's protocol does the reading; this puts it on uvicorn's transport. Between two frames a connection holds no
task and no timer, and a frame for many is written as it stands, so a node can hold many thousands of them
(docs/decisions/0005).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol
from urllib.parse import unquote

import uvicorn
from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from emulator.config.settings import Limits
from emulator.errors import EngineError, ServiceError, TooLarge, TooManyRequests, Unavailable
from emulator.observability.access_log import log_request
from emulator.observability.request_context import RequestContext, bound_to, current, request_id
from emulator.realtime.frames import PING, text_frame
from emulator.wire.coalescing_transport import CoalescingTransport
from emulator.wire.errors import error_body

CLOSE_WITHIN = 2.0
"""Seconds in which the other side is to answer a close; then the connection is cut."""
_BEYOND_LIMITS: dict[int, ServiceError] = {
    CloseCode.MESSAGE_TOO_BIG: TooLarge("Message too large"),
    CloseCode.TRY_AGAIN_LATER: TooManyRequests("Too much to be read"),
}
"""Closes by which a limit is kept, as those who count refusals are told of them."""
_log = logging.getLogger("emulator.socket")
_library_log = logging.getLogger("emulator.socket.library")
_library_log.setLevel(logging.CRITICAL)  # what a client sends wrong is the client's matter


class Peer(Protocol):
    """What speaks on a connection. Nothing here waits: each method returns at once."""

    def opened(self) -> None:
        """The handshake is done."""
        ...

    def received(self, text: bytes | None) -> None:
        """A whole message came: UTF-8 text, or `None` for a binary one."""
        ...

    def going_away(self) -> None:
        """The service stops: finish, and close."""
        ...

    def ended(self) -> None:
        """The connection is no more."""
        ...


class PeerFactory(Protocol):
    """The service that connections belong to."""

    @property
    def limits(self) -> Limits: ...

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        """Who speaks at a path; raises a `ServiceError` where there is no socket."""
        ...

    def refused(self, error: ServiceError) -> None:
        """Something was refused before it came so far."""
        ...


class WebSocket(asyncio.Protocol):
    """One WebSocket. `uvicorn` makes it of the request that asked for it."""

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], _loop: object = None
    ) -> None:
        home: Any = config.app
        self._home: PeerFactory = home
        self._outbox: int = self._home.limits.outbox
        self._connections: set[Any] = server_state.connections
        self.request_id = ""
        """That of the handshake."""
        self._protocol = ServerProtocol(max_size=self._home.limits.frame, logger=_library_log)
        self._transport: CoalescingTransport
        self._peer: Peer | None = None
        self._opening: asyncio.Task[None] | None = None
        self._pieces: list[bytes] = []
        self._binary = False
        self._is_open = False
        """Whether frames may be written. The protocol knows; to ask it for each of many costs more than the writing."""
        self._heard = True
        self._paused = False
        self._overflowed = False
        self._cut: asyncio.TimerHandle | None = None

    # What uvicorn and its transport call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, on the transport of the request."""
        assert isinstance(transport, CoalescingTransport)
        self._transport = transport
        self._since = asyncio.get_running_loop().time()
        transport.set_write_buffer_limits(self._outbox)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._heard = True
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._shake_hands(event)
            elif isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._take(event)
        self._hand_on()

    def pause_writing(self) -> None:
        """Close: more than the outbox waits to be read, of messages, or of answers to pings."""
        self.close(CloseCode.TRY_AGAIN_LATER, f"over {self._outbox} bytes wait to be read")
        self._overflowed = True

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._is_open = False
        self._connections.discard(self)
        if self._cut:
            self._cut.cancel()
        if self._peer:
            self._peer.ended()

    def shutdown(self) -> None:
        """The server stops."""
        if self._peer:
            self._peer.going_away()
        else:
            self._transport.close()

    # What a peer calls

    def send(self, text: bytes) -> None:
        """Queue a message for this connection alone."""
        self.write(text_frame(text))

    def write(self, frame: bytes) -> None:
        """Queue a frame that is ready for the wire; never waits.

        A reader so slow that the outbox overflows is closed (1013), and nobody else notices (ruling B4).
        """
        if self._is_open:
            self._transport.write(frame)

    def close(self, code: int, reason: str = "") -> None:
        """Close behind what was queued; a second time does nothing."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason)
            self._hand_on()
            self._transport.resume_reading()  # for the answer

    def pause(self) -> None:
        """Take no more from the other side for now."""
        self._paused = True
        self._transport.pause_reading()

    def resume(self) -> None:
        """Take from the other side again."""
        self._paused, self._heard = False, True
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def check(self) -> None:
        """Ping; a connection from which nothing at all came since the last ping is dead, and is cut."""
        if self._paused:
            return  # nobody listens, so nobody can say whether it is silent
        if not self._heard:
            self._transport.abort()
            return
        self._heard = False
        self.write(PING)

    def _shake_hands(self, request: Request) -> None:
        brought = ((name.lower().encode(), value.encode()) for name, value in request.headers.raw_items())
        self.request_id = request_id(brought)
        response = self._protocol.accept(request)
        response.headers["X-Request-Id"] = self.request_id
        if response.status_code == 101:
            path, _, query = request.path.partition("?")
            self._opening = asyncio.get_running_loop().create_task(self._open(unquote(path), query, response))
        else:
            with bound_to(RequestContext(self.request_id)):
                self._log_refusal(response)
            self._protocol.send_response(response)

    async def _open(self, path: str, query: str, response: Response) -> None:
        """Answer the handshake once it is known who speaks here."""
        current.set(RequestContext(self.request_id))
        try:
            self._peer = await self._home.open_peer(path, query, self)
        except ServiceError as error:
            response = self._refusal(error)
        except EngineError as error:
            _log.error("storage failed in opening %s: %s", path[:100], error)
            response = self._refusal(Unavailable())
        self._opening = None
        if self._peer is None:
            self._log_refusal(response)
        if self._transport.is_closing():
            if self._peer:
                self._peer.ended()
            return
        self._protocol.send_response(response)
        self._hand_on()
        if self._peer:
            self._peer.opened()

    def _take(self, frame: Frame) -> None:
        """One frame of a message, or all of it."""
        if self._peer is None:
            return  # it came before the handshake was answered
        if frame.opcode is not Opcode.CONT:
            self._binary = frame.opcode is Opcode.BINARY
        if frame.data:  # any number of empty ones is within the limit of a message
            self._pieces.append(bytes(frame.data))
        if not frame.fin:
            return
        message, self._pieces = b"".join(self._pieces), []
        if self._binary:
            self._peer.received(None)
        elif message.isascii() or _is_utf8(message):
            self._peer.received(message)
        else:
            self._protocol.fail(CloseCode.INVALID_DATA, "not UTF-8")

    def _hand_on(self) -> None:
        """Write what the protocol has to say, and see to it that a closed connection ends."""
        self._is_open = self._protocol.state is State.OPEN
        ends = self._protocol.close_expected()
        for data in self._protocol.data_to_send():
            if data and not self._overflowed:  # else there are only answers to pings, of one who reads nothing
                self._transport.write(data)
            elif not data:
                # What still comes is read and dropped: closed at once, the connection would be reset, and the other
                # side might never see why.
                self._transport.write_eof()
                ends = True
        if ends and self._cut is None:
            sent = self._protocol.close_sent
            if sent is not None and sent.code in _BEYOND_LIMITS:
                self._home.refused(_BEYOND_LIMITS[sent.code])
            self._cut = asyncio.get_running_loop().call_later(CLOSE_WITHIN, self._transport.abort)

    def _log_refusal(self, response: Response) -> None:
        """A handshake that is granted has no line: its requests have."""
        took = asyncio.get_running_loop().time() - self._since
        log_request({"action": "socket handshake"}, response.status_code, took, len(response.body or b""), None)

    def _refusal(self, error: ServiceError) -> Response:
        body = error_body(error)
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
        headers["X-Request-Id"] = self.request_id
        if error.retry_after is not None:
            headers["Retry-After"] = str(error.retry_after)
        return Response(error.status, error.title, headers, body)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
