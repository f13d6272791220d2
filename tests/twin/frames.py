"""A WebSocket as bytes: handshakes, frames and closes as they arrive."""

from __future__ import annotations

import struct
import time
from contextlib import suppress

from twin.wire import TIMEOUT, Response, Wire

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class FrameSocket:
    """One connection. `frames` has all texts that arrived; a close is the last of them, in words."""

    def __init__(self, port: int, path: str, *headers: str) -> None:
        self._wire = Wire(port)
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *headers]  # fmt: skip
        self._wire.send("\r\n".join([*lines, "", ""]).encode())
        self.frames: list[str] = []
        self.response: Response | None = None
        self.is_open = True

    def handshake(self) -> Response:
        """Return the response to the handshake."""
        response = self._wire.receive(has_body=True)
        self.is_open = response.status.startswith("101")
        if not self.is_open:
            self._wire.close()
        return response

    def send(self, text: str, opcode: int = _TEXT) -> None:
        if self.is_open:
            self._wire.send(_frame(text.encode("utf-8", "surrogatepass"), opcode))

    def read_until(self, mark: str) -> None:
        """Read frames until one contains `mark`, which is not kept, or the connection closes."""
        while self.is_open:
            text = self._next(time.monotonic() + TIMEOUT)
            if text is not None and mark in text:
                return
            if text is not None:
                self.frames.append(text)

    def read_for(self, seconds: float) -> None:
        """Read the frames that arrive within a time."""
        until = time.monotonic() + seconds
        while self.is_open and (text := self._next(until)) is not None:
            self.frames.append(text)

    def close(self) -> None:
        self.is_open = False
        self._wire.close()

    def _next(self, until: float) -> str | None:
        """Return the next text, or `None` after the time or a close."""
        while self.is_open:
            if not self._wire.readable(until - time.monotonic()):
                return None
            try:
                opcode, data = self._read()
            except (EOFError, OSError):
                self._closed("connection lost")
                return None
            if opcode == _PING:
                self._wire.send(_frame(data, _PONG))
            elif opcode == _CLOSE:
                code = struct.unpack("!H", data[:2])[0] if data else "none"
                with suppress(OSError):
                    self._wire.send(_frame(data[:2], _CLOSE))
                self._closed(f"closed: {code} {data[2:].decode('utf-8', 'replace')}")
                return None
            elif opcode != _PONG:
                return data.decode("utf-8", "backslashreplace")
        return None

    def _closed(self, how: str) -> None:
        self.frames.append(how)
        self.close()

    def _read(self) -> tuple[int, bytes]:
        first, second = self._wire.exactly(2)
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(self._wire.exactly(2 if size == 126 else 8), "big")
        return first & 0x0F, self._wire.exactly(size)


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
