"""The request timeout: for a request to arrive, and for its response to be read."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from emulator.core.settings import Limits, Settings
from support.service import Client, LiveServer, live_server

pytestmark = pytest.mark.long

RESPONSES = 20
"""More than the buffers hold: each is over a megabyte."""
INCOMPLETE = [
    b"P",
    b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\n",
    b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n",
    b'POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n{"value": 1}',
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


def test_an_incomplete_request_gets_408_has_no_effect_and_closes_the_connection(live: LiveServer):
    backend = live.client("backend", channel="777")
    credential = backend.headers["Authorization"].encode()
    with ExitStack() as stack:
        silent, *incomplete = (stack.enter_context(live.connect()) for _ in ("", *INCOMPLETE))
        for connection, request in zip(incomplete, INCOMPLETE, strict=True):
            connection.sendall(request.replace(b"{credential}", credential))
        answers = [read_all(each) for each in incomplete]
        assert b"" == read_all(silent)

    for answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"\r\nconnection: close" in head
        told = json.loads(body)
        assert ("Request timeout", "the request did not arrive within 1 seconds") == (told["reason"], told["info"])
    assert 0 == backend.get("vote").json()["count"]


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
