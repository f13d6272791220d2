"""WebSocket frames as bytes, and a connection that sends and reads them without a library."""

from __future__ import annotations

import base64
import json
import os
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from emulator.realtime.websocket import WebSocket
from support.service import CLIENT_ID, LiveServer
from support.socket_client import TIMEOUT

MIB = 1024 * 1024
TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
READ = json.dumps({"action": "get", "params": {"request_id": 1, "target": "nothing"}}).encode()


def frame(
    opcode: int, data: bytes = b"", *, fin: bool = True, reserved: int = 0, mask: bool = True, size: int = -1
) -> bytes:
    """A client's frame; `size` replaces the length in its head."""
    size = len(data) if size < 0 else size
    head = bytes([fin << 7 | reserved << 4 | opcode])
    bit = 0x80 if mask else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65_536:
        head += bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([bit | 127]) + size.to_bytes(8, "big")
    if not mask:
        return head + data
    key = b"\x13\x57\x9b\xdf"
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(data))


class Raw:
    """A TCP connection after the WebSocket handshake, without a WebSocket library."""

    def __init__(self, live: LiveServer, *, receive_buffer: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(("127.0.0.1", urlsplit(live.url).port or 0))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /0.2.0/{CLIENT_ID} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        self._stream = self.socket.makefile("rb")
        assert b"101" in self._stream.readline()
        while self._stream.readline() != b"\r\n":
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def send(self, *chunks: bytes) -> None:
        for chunk in chunks:
            self.socket.sendall(chunk)

    def read(self) -> tuple[int, bytes] | None:
        """The next frame as opcode and data; `None` at the end."""
        head = self._stream.read(2)
        if len(head) < 2:
            return None
        size = head[1]
        assert size < 128, "a server does not mask frames"
        if size > 125:
            size = int.from_bytes(self._stream.read(2 if size == 126 else 8), "big")
        return head[0] & 0xF, self._stream.read(size)

    def request_status(self) -> int:
        """Send a valid request; return the status of its reply."""
        self.send(frame(TEXT, READ))
        opcode, data = self.read() or (0, b"")
        assert TEXT == opcode
        return int(json.loads(data)["errors"][0]["status"])

    def close(self) -> None:
        self._stream.close()
        self.socket.close()

    def close_code(self) -> int | None:
        """Read up to the close frame and return its code; `None` if there is none."""
        with suppress(ConnectionError):
            while (read := self.read()) is not None:
                if read[0] == CLOSE:
                    return int.from_bytes(read[1][:2], "big")
        return None


def latest(live: LiveServer) -> WebSocket:
    """The service's side of the latest connection."""
    return list(live.service.gateway.admission.peers)[-1].connection


def ping(live: LiveServer, server_side: WebSocket) -> None:
    """Ping the client as `ping_connections` does."""

    async def act() -> None:
        server_side.ping()

    live.run(act())


def settle(live: LiveServer) -> None:
    """Return when the service has read everything sent to it so far."""
    live.now()
