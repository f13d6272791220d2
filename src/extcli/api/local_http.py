"""GET requests without an HTTP library, which is slow to import: for start-up, and for completion in shells.

A service on this machine is asked whether it is ready, or for its names. HTTP/1.0 ends a response with its connection.
"""

from __future__ import annotations

import os
import re
import socket
from typing import NamedTuple

from extcli import clock

_PORTS = {"http": "80", "https": "443"}
_LARGEST = 4 << 20
"""Bytes of a response."""
_PIECE = 1 << 16
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])\b")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,9})", re.IGNORECASE)


class Failed(Exception):
    """Raised if there is no complete response. The text says why."""


class Response(NamedTuple):
    """The status of a response, and its body."""

    status: int
    body: bytes


def get(url: str, path: str, *, seconds: float, authorization: str = "") -> Response:
    """Send `GET url/path` as a probe, and return the response within `seconds`.

    Raises `Failed`. The URL must begin with `http://` or `https://`.
    """
    scheme, _, rest = url.partition("://")
    place, slash, base = rest.partition("/")
    if scheme not in _PORTS or not all("!" <= char <= "~" for char in f"{rest}{path}{authorization}".replace(" ", "")):
        raise Failed(f"{url} is not an http address")
    lines = [f"GET {slash}{base.rstrip('/')}{path} HTTP/1.0", f"host: {place}"]
    lines += [f"x-request-id: probe-{os.urandom(6).hex()}"]  # the journal does not list it
    lines += [f"authorization: {authorization}"] if authorization else []
    try:
        received = _answer(scheme, place, "\r\n".join([*lines, "", ""]).encode(), seconds)
    except OSError as error:
        is_late = isinstance(error, TimeoutError)
        raise Failed("no response in time" if is_late else error.strerror or str(error)) from None
    head, end, body = received.partition(b"\r\n\r\n")
    status, length = _STATUS.match(head), _LENGTH.search(head)
    if status is None:
        raise Failed("the response is not HTTP" if received else "the response is incomplete")
    if not end or len(body) < int(length[1] if length else 0):
        raise Failed("the response is incomplete")
    return Response(int(status[1]), body)


def _answer(scheme: str, place: str, request: bytes, seconds: float) -> bytes:
    """Return all that a server sends until it closes the connection. Raises `OSError` and `Failed`."""
    deadline, received = clock.elapsed() + seconds, bytearray()
    with _connect(scheme, place, seconds) as connection:
        connection.sendall(request)
        while (left := deadline - clock.elapsed()) > 0:
            connection.settimeout(left)
            data = connection.recv(_PIECE)
            received += data
            if len(received) > _LARGEST:
                raise Failed(f"the response is too large: over {_LARGEST:,} bytes")
            if not data:
                return bytes(received)
    raise TimeoutError


def _connect(scheme: str, place: str, seconds: float) -> socket.socket:
    host, _, port = place.rpartition(":") if place.rpartition(":")[2].isdigit() else (place, "", _PORTS[scheme])
    connection = socket.create_connection((host.strip("[]"), int(port)), seconds)
    if scheme == "http":
        return connection
    import ssl

    # Loading the authorities would take longer than all else. Nothing secret is sent, so no certificate is needed.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)
