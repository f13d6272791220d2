"""Sends bytes over HTTP/1.1 and reads responses as they are. Knows no library's opinion of what is valid."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

TIMEOUT = 60.0
"""Seconds to wait for bytes; a service that needs longer has failed."""


class Response(NamedTuple):
    """A response as it arrived."""

    status: str
    """The status line without the version."""
    headers: list[tuple[str, str]]
    body: bytes
    closed: bool
    """Whether the service closed the connection after it."""

    def header(self, name: str) -> str:
        return next((value for each, value in self.headers if each.lower() == name), "")


CLOSED = Response("closed without a response", [], b"", True)


class Wire:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._read = b""

    def send(self, data: bytes) -> None:
        """Send a request; connects first if needed."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=TIMEOUT)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._read = b""
        with suppress(OSError):  # the service may answer and close before it has read everything
            self._socket.sendall(data)

    def receive(self, *, has_body: bool = True) -> Response:
        """Return the next response."""
        try:
            return self._response(has_body)
        except (ConnectionError, EOFError):
            self.close()
            return CLOSED
        except TimeoutError:
            self.close()
            return Response("no response in time", [], b"", True)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _response(self, has_body: bool) -> Response:
        while True:
            head = self._until(b"\r\n\r\n").decode("latin-1")
            first, *lines = head[:-4].split("\r\n")
            status = first.partition(" ")[2]
            if not status.startswith("100"):
                break
        pairs = [line.partition(":") for line in lines]
        headers = [(name, value.strip()) for name, _, value in pairs]
        fields = {name.lower(): value.lower() for name, value in headers}
        if not has_body or status[:3] in ("101", "204", "304"):
            body = b""
        elif "chunked" in fields.get("transfer-encoding", ""):
            body = self._chunks()
        elif "content-length" in fields:
            body = self.exactly(int(fields["content-length"]))
        else:
            body = self.rest()
        closed = fields.get("connection") == "close"
        if closed:
            self.close()
        return Response(status, headers, body, closed)

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self._until(b"\r\n").split(b";")[0], 16):
            parts.append(self.exactly(size))
            self.exactly(2)
        self._until(b"\r\n")
        return b"".join(parts)

    def _until(self, mark: bytes) -> bytes:
        while (at := self._read.find(mark)) < 0:
            self._more()
        found, self._read = self._read[: at + len(mark)], self._read[at + len(mark) :]
        return found

    def exactly(self, size: int) -> bytes:
        """Return the next bytes. Raises `EOFError` if the connection ends before."""
        while len(self._read) < size:
            self._more()
        found, self._read = self._read[:size], self._read[size:]
        return found

    def rest(self) -> bytes:
        """Return everything up to the end of the connection."""
        try:
            while True:
                self._more()
        except EOFError:
            found, self._read = self._read, b""
            self.close()
            return found

    def _more(self) -> None:
        if self._socket is None:
            raise EOFError
        data = self._socket.recv(1 << 18)
        if not data:
            raise EOFError
        self._read += data


def readable(wires: Iterable[Wire], seconds: float) -> set[Wire]:
    """Wait until some wires have bytes or are closed, and return these; none after the time."""
    sockets = {each._socket: each for each in wires}
    if ready := {each for each in sockets.values() if each._read or each._socket is None}:
        return ready
    return {sockets[each] for each in select.select(list(sockets), [], [], seconds)[0]}
