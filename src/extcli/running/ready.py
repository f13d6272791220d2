"""Asks a service on this machine whether it is ready, without an HTTP library: one is slow to import."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

_TIMEOUT = 10.0
_REQUEST = "GET /_emulator/ready HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"


def problem(url: str) -> str:
    """Return why the service at this URL is not ready: its answer's body, or the error. Empty if it is ready."""
    address = urlsplit(url)
    try:
        with socket.create_connection((address.hostname or "", address.port or 80), _TIMEOUT) as connection:
            connection.sendall(_REQUEST.format(host=address.netloc).encode())
            with connection.makefile("rb") as answer:
                head, _, body = answer.read(1 << 16).partition(b"\r\n\r\n")
    except OSError as error:
        return error.strerror or str(error)
    return "" if head.startswith(b"HTTP/1.1 200 ") else body.decode(errors="replace")
