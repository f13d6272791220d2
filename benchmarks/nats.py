"""A client of the NATS protocol, with the interface of a WebSocket client of a crowd."""

from __future__ import annotations

import socket

from crowd import Socket

SUBJECT = b"hit"


class NatsSocket(Socket):
    """A client that subscribes to one subject and publishes to it."""

    @staticmethod
    def framed(size: int) -> int:
        """Return the bytes that the server sends for a message of `size` bytes."""
        return len(b"MSG %s 1 %d\r\n\r\n" % (SUBJECT, size)) + size

    def __init__(self, address: tuple[str, int], receive_buffer: int | None = None, path: str = "") -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = 0

    def finish_handshake(self) -> None:
        """Connect and subscribe, and wait until the server has done so."""
        assert self._line().startswith(b"INFO ")
        self._socket.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB %s 1\r\nPING\r\n' % SUBJECT)
        assert self._line() == b"PONG"

    def answer_first_ping(self) -> None:
        """Wait for the ping that comes two seconds after connecting; the next comes after `ping_interval`."""
        assert self._line() == b"PING"
        self._socket.sendall(b"PONG\r\n")

    def send(self, *texts: bytes) -> None:
        """Publish messages with one write."""
        self._socket.sendall(b"".join(b"PUB %s %d\r\n%s\r\n" % (SUBJECT, len(text), text) for text in texts))

    def message(self) -> bytes:
        """Return the next message."""
        line = self._line()
        assert line.startswith(b"MSG "), line
        size = int(line.rpartition(b" ")[2])
        return self._socket.recv(size + 2, socket.MSG_WAITALL)[:-2]

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\r\n"):
            line += self._socket.recv(1)
        return line[:-2]
