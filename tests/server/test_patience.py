"""In what time a request has to arrive, and its answer to be taken."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from emulator.config.settings import Limits, Settings
from support.service import Client, LiveServer, live_server

WITHIN = 10.0
"""Seconds in which anything awaited here must have come."""
MORE_THAN_BUFFERS_HOLD = 20
"""Answers of over a megabyte each."""
BEGUN = [
    b"P",
    b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\n",
    b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n",
    b'POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n{"value"',
    b"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 20\r\n\r\n{",
]


@pytest.fixture(scope="module")
def hurried() -> Iterator[LiveServer]:
    with live_server(Settings(limits=Limits(request_timeout=1))) as live:
        yield live


@pytest.fixture
def connection(hurried: LiveServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", urlsplit(hurried.url).port or 0), timeout=WITHIN) as connection:
        yield connection


def all_of(connection: socket.socket) -> bytes:
    """What comes until the other side hangs up."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize("begun", BEGUN)
def test_a_request_that_does_not_arrive_is_408_and_the_connection_ends(
    hurried: LiveServer, connection: socket.socket, begun: bytes
):
    credential = hurried.client("backend", channel="777").headers["Authorization"].encode()
    connection.sendall(begun.replace(b"{credential}", credential))

    head, _, body = all_of(connection).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"\r\nconnection: close" in head
    assert ("Request timeout", "the request did not arrive within 1 seconds") == (
        json.loads(body)["reason"],
        json.loads(body)["info"],
    )


def test_what_did_not_arrive_whole_is_not_done(hurried: LiveServer, connection: socket.socket):
    backend = hurried.client("backend", channel="777")
    credential = backend.headers["Authorization"].encode()
    head = b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: " + credential + b"\r\nContent-Length: 20\r\n\r\n"
    connection.sendall(head + b'{"value": 1}')

    all_of(connection)

    assert 0 == backend.get("vote").json()["count"]


def test_who_connects_and_says_nothing_is_hung_up_on(connection: socket.socket):
    assert b"" == all_of(connection)


def test_a_connection_between_two_requests_is_not_in_a_hurry(hurried: LiveServer, connection: socket.socket):
    request = b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(connection.getpeername(), timeout=WITHIN) as silent:
        connection.sendall(request)
        first = connection.recv(65_536)
        all_of(silent)  # which ends when patience does
        connection.sendall(request)
        second = connection.recv(65_536)

    assert (True, True) == (first.startswith(b"HTTP/1.1 200"), second.startswith(b"HTTP/1.1 200"))


def test_answers_that_nobody_takes_are_cut(hurried: LiveServer, connection: socket.socket):
    with Client(base_url=hurried.url) as client:
        whole = len(client.get("/schema/swagger_bundle.js").content)
    connection.sendall(b"GET /schema/swagger_bundle.js HTTP/1.1\r\nHost: x\r\n\r\n" * MORE_THAN_BUFFERS_HOLD)
    for _ in range(2):  # and wait, for longer than its patience
        with socket.create_connection(connection.getpeername(), timeout=WITHIN) as silent:
            all_of(silent)

    received = 0
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 20):
            received += len(piece)

    assert received < whole * MORE_THAN_BUFFERS_HOLD
