"""A WebSocket as bytes: handshakes, frames and closes as they arrive."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from twin.wire import Response, Wire, readable

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class FrameSocket:
    """One connection. `frames` has all texts that arrived; a close is the last of them, in words."""

    def __init__(self, port: int, path: str, *headers: str) -> None:
        self.wire = Wire(port)
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *headers]  # fmt: skip
        self.wire.send("\r\n".join([*lines, "", ""]).encode())
        self.frames: list[str] = []
        self.mark: str | None = None
        """What stands in the frame that the connection waits for. That frame is not kept."""
        self.is_open = True

    def handshake(self) -> Response:
        """Return the response to the handshake."""
        response = self.wire.receive(has_body=True)
        self.is_open = response.status.startswith("101")
        if not self.is_open:
            self.wire.close()
        return response

    def send(self, text: str, opcode: int = _TEXT) -> None:
        if self.is_open:
            self.wire.send(_frame(text.encode("utf-8", "surrogatepass"), opcode))

    def read(self) -> None:
        """Read one frame, and wait for its end."""
        try:
            opcode, data = self._read()
        except (EOFError, OSError):
            self.end("connection lost")
            return
        if opcode == _PING:
            self.wire.send(_frame(data, _PONG))
        elif opcode == _CLOSE:
            code = struct.unpack("!H", data[:2])[0] if data else "none"
            self.wire.send(_frame(data[:2], _CLOSE))
            # The end of the connection says that the service does not list it any more.
            with suppress(OSError):
                self.wire.rest()
            self.end(f"closed: {code} {data[2:].decode('utf-8', 'replace')}")
        elif opcode != _PONG:
            self._keep(data.decode("utf-8", "backslashreplace"))

    def end(self, how: str) -> None:
        """Close, and note how it came to that."""
        self.frames.append(how)
        self.close()

    def close(self) -> None:
        self.is_open = False
        self.wire.close()

    def _keep(self, text: str) -> None:
        if self.mark is not None and self.mark in text:
            self.mark = None
        else:
            self.frames.append(text)

    def _read(self) -> tuple[int, bytes]:
        first, second = self.wire.exactly(2)
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(self.wire.exactly(2 if size == 126 else 8), "big")
        return first & 0x0F, self.wire.exactly(size)


def _frame(data: bytes, opcode: int) -> bytes:
    """Return a frame of a client; its mask is zero, which leaves the data as they are."""
    size = len(data)
    if size < 126:
        head = bytes([0x80 | opcode, 0x80 | size])
    elif size < 1 << 16:
        head = bytes([0x80 | opcode, 0x80 | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, 0x80 | 127]) + size.to_bytes(8, "big")
    return head + b"\0\0\0\0" + data


def read_while(
    is_missing: Callable[[], object], sockets: Iterable[FrameSocket], wires: Sequence[Wire], seconds: float
) -> None:
    """Read frames of all connections while something is missing, at most for a time. Bytes on `wires` are not read.

    A service closes a connection that leaves a ping unanswered. So none is left unread while another is waited for.
    """
    until = time.monotonic() + seconds
    while is_missing() and (left := until - time.monotonic()) > 0:
        by_wire = {each.wire: each for each in sockets if each.is_open}
        ready = readable([*by_wire, *wires], left)
        for wire in ready & by_wire.keys():
            by_wire[wire].read()
