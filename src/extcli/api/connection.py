"""Connections without an HTTP library, which is slow to import: what is trusted over TLS, and GET requests.

Start-up and completion ask a service whether it is ready, or for its names. HTTP/1.0 ends a response with its
connection.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    import ssl

_PORTS = {"http": 80, "https": 443}
_MAX_RESPONSE_BYTES = 4 << 20
"""Bytes of a response."""
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])\b")


class Failed(Exception):
    """Raised if there is no response. The text says why."""


class Response(NamedTuple):
    """The status of a response, and its body."""

    status: int
    body: bytes


def authority() -> Path:
    """Return the file with the certificate of this user's authority. It exists after the first `serve --tls`."""
    import platformdirs

    return platformdirs.user_state_path("extcli", appauthor=False) / "tls" / "authority.pem"


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context of every client: it trusts the system's authorities, and that of `serve --tls`."""
    import ssl

    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509"]:  # the system has none, for example in a small container
        import certifi

        context.load_verify_locations(certifi.where())
    with suppress(OSError):
        context.load_verify_locations(authority())
    return context


def addresses_of(host: str) -> list[str]:
    """Return the addresses of a host, in the order of the system's resolver; none if it has none, or no name."""
    found = []
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    addresses = (str(address[0]).partition("%")[0] for *_, address in found)
    return list(dict.fromkeys(addresses))


def get(url: str, path: str, *, seconds: float, authorization: str = "") -> Response:
    """Send `GET url/path` as a probe, and return the response. No part of it may take longer than `seconds`.

    Raises `Failed`. The URL must begin with `http://` or `https://`.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or re.search("[^ -~]", f"{url}{path}{authorization}"):
        raise Failed(f"{url} is not an http or https URL")
    lines = [f"GET {parts.path.rstrip('/')}{path} HTTP/1.0", f"host: {parts.netloc}", f"x-request-id: {probe_id()}"]
    if authorization:
        lines.append(f"authorization: {authorization}")
    try:
        with _connect(parts, seconds) as connection, connection.makefile("rb") as answer:
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            received = answer.read(_MAX_RESPONSE_BYTES)
    except TimeoutError:
        raise Failed("no response in time") from None
    except OSError as error:
        raise Failed(error.strerror or str(error)) from None
    head, end, body = received.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    if not status or not end:
        raise Failed("the response is not HTTP" if received and not status else "the response is incomplete")
    return Response(int(status[1]), body)


def probe_id() -> str:
    """Return a request id that marks a request of extcli's own, which the journal of an emulator does not list."""
    return f"probe-{os.urandom(6).hex()}"


def _connect(parts: SplitResult, seconds: float) -> socket.socket:
    connection = socket.create_connection((parts.hostname, parts.port or _PORTS[parts.scheme]), seconds)
    if parts.scheme == "http":
        return connection
    import ssl

    # Loading the authorities would take longer than all else. Nothing secret is sent, so no certificate is needed.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)
