"""GET requests without an HTTP library, which is slow to import: for start-up, and for completion in shells.

A service on this machine is asked whether it is ready, what production would have done, or for its names. Crowds read
their responses with the same reader.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import NamedTuple

from extcli import clock

LARGEST = 64 << 20
"""Bytes of a response that is read into memory."""
_LARGEST_HEAD = 1 << 16
_PIECE = 1 << 16


class Failed(Exception):
    """Raised if there is no complete response. The text says why."""


class Response(NamedTuple):
    """The status of a response, and its body, unless the body was passed to `write`."""

    status: int
    body: bytes


def get(
    url: str,
    path: str,
    *,
    seconds: float,
    authorization: str = "",
    largest: int | None = LARGEST,
    write: Callable[[bytes], object] | None = None,
) -> Response:
    """Send `GET url/path` as a probe, and return the response within `seconds`.

    Raises `Failed`, also for over `largest` bytes.
    With `write`, the body of a 200 goes there in pieces instead, and an `OSError` of it is raised. The URL must begin
    with `http://`.
    """
    scheme, _, rest = url.partition("://")
    place, slash, base = rest.partition("/")
    if scheme != "http" or not all("!" <= char <= "~" for char in f"{rest}{path}{authorization}".replace(" ", "")):
        raise Failed(f"{url} is not an http address")
    lines = [f"GET {slash}{base.rstrip('/')}{path} HTTP/1.1", f"host: {place}", "connection: close"]
    lines += [f"x-request-id: probe-{os.urandom(6).hex()}"]  # the journal does not list it
    lines += [f"authorization: {authorization}"] if authorization else []
    reader = ResponseReader(largest, write)
    deadline = clock.elapsed() + seconds
    try:
        with socket.create_connection(_address(place), seconds) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            while not reader.is_complete:
                connection.settimeout(max(deadline - clock.elapsed(), 0.001))
                if clock.elapsed() > deadline:
                    raise TimeoutError
                data = connection.recv(_PIECE)
                if not data:
                    reader.end()
                    break
                reader.feed(data)
    except OSError as error:
        if error is reader.unwritten:
            raise
        is_late = isinstance(error, TimeoutError)
        raise Failed("no response in time" if is_late else error.strerror or str(error)) from None
    return Response(reader.status, bytes(reader.body))


class ResponseReader:
    """Finds where each response on one connection ends. Its methods are the callbacks of httptools."""

    def __init__(self, largest: int | None, write: Callable[[bytes], object] | None = None) -> None:
        """A response may have at most `largest` bytes. With `write`, the body of a 200 is passed to it in pieces."""
        from httptools import HttpParserError, HttpResponseParser

        self._not_http = HttpParserError
        self.unwritten: OSError | None = None
        """The error of `write`."""
        self._largest = largest
        self._write = write
        self._parser = HttpResponseParser(self)
        self.reset()

    def reset(self) -> None:
        """Prepare for the next response on the connection."""
        self.status = 0
        """0 until the whole head has come, without responses 1xx before it."""
        self.body = bytearray()
        self.retry_after: str | None = None
        self.is_complete = False
        self.closes = False
        """Whether the service closes the connection after this response."""
        self._size = 0
        self._until_close = True
        self._head = 0

    def feed(self, data: bytes) -> None:
        """Parse the next bytes of the response. Raises `Failed` if they are not HTTP."""
        try:
            self._parser.feed_data(data)
        except self._not_http as error:
            cause = error.__context__
            raise cause if isinstance(cause, Failed | OSError) else Failed("the response is not HTTP") from None
        if not self.status:
            self._head += len(data)
            if self._head > _LARGEST_HEAD:
                raise Failed("the head of the response is too large")

    def end(self) -> None:
        """Handle that the service closed the connection. Raises `Failed` if the response is incomplete."""
        if not self.status or not self._until_close:
            raise Failed("the response is incomplete")

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self._until_close = False
        elif name == b"retry-after":
            self.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self.status = status if status >= 200 else 0
        self.closes = not self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._largest is not None and self._size > self._largest:
            raise Failed(f"the response is too large: over {self._largest:,} bytes")
        if self._write and self.status == 200:
            try:
                self._write(data)
            except OSError as error:
                self.unwritten = error
                raise
        else:
            self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = self.status > 0


def _address(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":") if place.rpartition(":")[2].isdigit() else (place, "", "80")
    return host.strip("[]"), int(port)
