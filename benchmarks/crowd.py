"""Many WebSockets held by one thread, lightly enough that a measurement of them is one of their server."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence

AT_ONCE = 250
"""Connections that are opened at the same time."""
WITHIN = 60.0
_BUFFER = bytearray(1 << 18)


def frame(text: bytes) -> bytes:
    """One text as a client sends it, under a mask of zeros."""
    size = len(text)
    head = bytes([0x81, 0x80 | size]) if size < 126 else b"\x81\xfe" + size.to_bytes(2, "big")
    return head + b"\x00\x00\x00\x00" + text


def _framed(size: int) -> int:
    """Bytes on the wire of a server's text of such a size."""
    return size + (2 if size < 126 else 4 if size < 65_536 else 10)


class Socket:
    """One connection behind its handshake, which counts the bytes that come."""

    def __init__(self, place: tuple[str, int], receive_buffer: int | None = None, path: str = "/0.2.0/bench") -> None:
        self._socket = socket.socket()
        if receive_buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.connect(place)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(
            b"GET " + path.encode() + b" HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self.came = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self) -> None:
        """Count what is there."""
        size = self._socket.recv_into(_BUFFER)
        assert size, "the server hung up"
        self.came += size

    def shaken(self) -> None:
        """Wait for the end of the handshake."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._socket.recv(1)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def send(self, *texts: bytes) -> None:
        """Send frames in one piece."""
        self._socket.sendall(b"".join(map(frame, texts)))

    def message(self) -> bytes:
        """The next text."""
        head = self._socket.recv(2, socket.MSG_WAITALL)
        size = head[1]
        if size >= 126:
            size = int.from_bytes(self._socket.recv(2 if size == 126 else 8, socket.MSG_WAITALL), "big")
        return self._socket.recv(size, socket.MSG_WAITALL)

    def close(self) -> None:
        self._socket.close()


class Crowd:
    """Connections that said the same and hear the same."""

    def __init__(
        self,
        place: tuple[str, int],
        size: int,
        asks: Sequence[bytes] = (),
        *,
        path: str = "/0.2.0/bench",
        greetings: int = 0,
    ) -> None:
        """Open so many; each sends the texts of `asks`, and waits for one answer to each that is no refusal.

        `greetings` is how many texts the server sends before.
        """
        self.sockets: list[Socket] = []
        self._poll = select.epoll()
        began = time.perf_counter()
        while len(self.sockets) < size:
            some = [Socket(place, path=path) for _ in range(min(AT_ONCE, size - len(self.sockets)))]
            for each in some:
                each.shaken()
                for _ in range(greetings):
                    each.message()
            for ask in asks:
                for each in some:
                    each.send(ask)
                for each in some:
                    answer = each.message()
                    assert b"error" not in answer, answer
            self.sockets += some
        self.opened_per_second = size / (time.perf_counter() - began)
        self._by_number = {each.fileno(): each for each in self.sockets}
        for each in self.sockets:
            self._poll.register(each.fileno(), select.EPOLLIN)

    def hear(self, texts: int, size: int) -> list[float]:
        """Wait until each has so many texts of one size, and not a byte more; returns when each had, in order."""
        target = texts * _framed(size)
        ends = time.perf_counter() + WITHIN
        times: list[float] = []
        while len(times) < len(self.sockets):
            for number, _ in self._poll.poll(1, len(self.sockets)):
                each = self._by_number[number]
                each.take()
                if each.came >= target:
                    assert each.came == target, "more came than was expected"
                    each.came = 0
                    times.append(time.perf_counter())
            assert time.perf_counter() < ends, f"only {len(times)} of {len(self.sockets)} have heard everything"
        return times

    def heard_nothing_more(self) -> bool:
        """Whether nothing else is there."""
        return not self._poll.poll(0)

    def close(self) -> None:
        self._poll.close()
        for each in self.sockets:
            each.close()
