"""Many WebSocket clients in one thread, cheap enough that a measurement shows the server and not the clients."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Sequence

from common import Address

BATCH = 250
"""Connections opened at the same time."""
TIMEOUT = 60.0
GAME = "/0.2.0/bench"
_BUFFER = bytearray(1 << 18)


def message(action: str, target: str = "", **data: object) -> bytes:
    """Return the text of a request of a game."""
    return json.dumps({"action": action, "params": {"request_id": 1, "target": target}, "data": data}).encode()


def frame(text: bytes) -> bytes:
    """Return a masked text frame, with a mask of zeros."""
    size = len(text)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = b"\xfe" + size.to_bytes(2, "big") if size < 65_536 else b"\xff" + size.to_bytes(8, "big")
    return b"\x81" + length + b"\x00\x00\x00\x00" + text


class Socket:
    """A WebSocket client that counts the bytes it receives."""

    def __init__(self, address: Address, path: str = GAME) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(
            b"GET " + path.encode() + b" HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self.received = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> None:
        """Read and count the available bytes."""
        size = self._socket.recv_into(_BUFFER)
        assert size, "the server closed the connection"
        self.received += size

    def finish_handshake(self) -> None:
        """Wait for the response to the handshake."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._socket.recv(1)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def send(self, *texts: bytes) -> None:
        """Send text frames with one write."""
        self.sendall(b"".join(map(frame, texts)))

    def sendall(self, data: bytes) -> None:
        """Send frames as they are."""
        self._socket.sendall(data)

    def message(self) -> bytes:
        """Return the next text."""
        head = self._socket.recv(2, socket.MSG_WAITALL)
        size = head[1]
        if size >= 126:
            size = int.from_bytes(self._socket.recv(2 if size == 126 else 8, socket.MSG_WAITALL), "big")
        return self._socket.recv(size, socket.MSG_WAITALL)

    def close(self) -> None:
        self._socket.close()


class Crowd:
    """Clients with the same subscriptions."""

    def __init__(
        self, address: Address, size: int, requests: Sequence[bytes] = (), *, path: str = GAME, greetings: int = 0
    ) -> None:
        """Open `size` clients, which send each of `requests` and wait for its reply.

        `greetings` is the number of texts that the server sends first.
        """
        self.sockets: list[Socket] = []
        self._poll = select.epoll()
        while len(self.sockets) < size:
            batch = [Socket(address, path) for _ in range(min(BATCH, size - len(self.sockets)))]
            for each in batch:
                each.finish_handshake()
                for _ in range(greetings):
                    each.message()
            for request in requests:
                for each in batch:
                    each.send(request)
                for each in batch:
                    reply = each.message()
                    assert b"error" not in reply, reply
            self.sockets += batch
        self._by_descriptor = {each.fileno(): each for each in self.sockets}
        for each in self.sockets:
            self._poll.register(each.fileno(), select.EPOLLIN)

    def wait_for(self, texts: int, size: int, send_next: Callable[[], None] | None = None) -> float:
        """Wait until each client has `texts` texts of `size` bytes; return when the last had them.

        As soon as one client has received each text but the last, call `send_next`.
        """
        framed = size + (2 if size < 126 else 4)
        target = texts * framed
        next_at = framed if send_next and texts > 1 else target + 1
        deadline = time.perf_counter() + TIMEOUT
        ready = 0
        while ready < len(self.sockets):
            for descriptor, _ in self._poll.poll(1, len(self.sockets)):
                each = self._by_descriptor[descriptor]
                each.receive()
                if each.received >= next_at and send_next:
                    send_next()
                    next_at += framed if next_at + framed < target else target
                if each.received >= target:
                    assert each.received == target, "received more than expected"
                    each.received = 0
                    ready += 1
            assert time.perf_counter() < deadline, f"only {ready} of {len(self.sockets)} received everything"
        return time.perf_counter()

    def drain(self) -> None:
        """Read what the clients have, until nothing more comes."""
        while ready := self._poll.poll(0.05, len(self.sockets)):
            for descriptor, _ in ready:
                self._by_descriptor[descriptor].receive()

    def close(self) -> None:
        self._poll.close()
        for each in self.sockets:
            each.close()
