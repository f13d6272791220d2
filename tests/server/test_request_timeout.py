"""The request timeout: for a request to arrive, and for its response to be read."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from emulator.core.settings import Limits, Settings
from support.examples import spread
from support.service import Client, LiveServer, live_server

pytestmark = pytest.mark.long

RESPONSES = 20
"""More than the buffers hold: each is over a megabyte."""
INCOMPLETE = [
    b"P",
    b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\n",
    b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n",
    b'POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n{"value"',
    b"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n{",
]


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with live_server(Settings(limits=Limits(request_timeout=1))) as live:
        yield live


@pytest.fixture
def connection(live: LiveServer) -> Iterator[socket.socket]:
    with live.connect() as connection:
        yield connection


def read_response(connection: socket.socket) -> int:
    """Read a whole response, and return its status."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize("incomplete", spread(INCOMPLETE, 4))
def test_an_incomplete_request_gets_408_and_closes_the_connection(
    live: LiveServer, connection: socket.socket, incomplete: bytes
):
    credential = live.client("backend", channel="777").headers["Authorization"].encode()
    connection.sendall(incomplete.replace(b"{credential}", credential))

    head, _, body = read_all(connection).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"\r\nconnection: close" in head
    assert ("Request timeout", "the request did not arrive within 1 seconds") == (
        json.loads(body)["reason"],
        json.loads(body)["info"],
    )


def test_an_incomplete_request_has_no_effect(live: LiveServer, connection: socket.socket):
    backend = live.client("backend", channel="777")
    credential = backend.headers["Authorization"].encode()
    head = b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: " + credential + b"\r\nContent-Length: 20\r\n\r\n"
    connection.sendall(head + b'{"value": 1}')

    read_all(connection)

    assert 0 == backend.get("vote").json()["count"]


def test_a_silent_connection_is_closed(connection: socket.socket):
    assert b"" == read_all(connection)


def test_the_timeout_does_not_apply_between_requests(live: LiveServer, connection: socket.socket):
    request = b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\n\r\n"
    with live.connect() as silent:
        connection.sendall(request)
        first = read_response(connection)
        read_all(silent)  # until the timeout closes it
        connection.sendall(request)
        second = read_response(connection)

    assert (200, 200) == (first, second)


def test_a_response_that_is_not_read_is_aborted(live: LiveServer, connection: socket.socket):
    with Client(base_url=live.url) as client:
        size = len(client.get("/schema/swagger-ui-bundle.js").content)
    connection.sendall(b"GET /schema/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n" * RESPONSES)
    for _ in range(2):  # wait for longer than the timeout
        with live.connect() as silent:
            read_all(silent)

    received = 0
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 20):
            received += len(piece)

    assert received < size * RESPONSES
