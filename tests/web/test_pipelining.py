"""Pipelined requests: each has a response, in order, and few are read ahead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Thread

import pytest

from emulator.core.settings import Settings
from emulator.http import http_protocol
from emulator.http.hot_path import HOT_ENDPOINTS
from support.service import LiveServer, live_server

REQUEST = b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\n\r\n"


def test_each_of_2000_pipelined_requests_has_a_response_in_order(live: LiveServer):
    with live.connect() as connection:
        requests = (f"GET /_emulator/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: r{n}\r\n\r\n" for n in range(2_000))
        sending = Thread(target=connection.sendall, args=("".join(requests).encode(),))
        sending.start()
        answers = b""
        while answers.count(b'{"status":"live"}') < 2_000:
            answers += connection.recv(1 << 20)
        sending.join()

    ids = [line.split(b": ")[1] for line in answers.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert [f"r{n}".encode() for n in range(2_000)] == ids


@pytest.mark.long
def test_pipelined_requests_are_not_read_far_ahead(monkeypatch):
    longest = 0

    class Observed(http_protocol.Protocol):
        def on_headers_complete(self) -> None:
            nonlocal longest
            super().on_headers_complete()
            longest = max(longest, len(self.pipeline))

    monkeypatch.setattr("emulator.process.http_server.HttpProtocol", Observed)
    with live_server() as live, live.connect() as connection:
        sending = Thread(target=connection.sendall, args=(REQUEST * 10_000,))
        sending.start()
        answers = b""
        while answers.count(b'{"status":"live"}') < 10_000:
            answers += connection.recv(1 << 20)
        sending.join()

    assert 0 < longest < 1_000


BROKEN = [
    b"GARBAGE\r\n\r\n",
    b"GET /v1/e/vote HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /v1/e/viewer_state HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /v1/e/vote HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 80_000,
]


@pytest.fixture(scope="module", params=[HOT_ENDPOINTS, frozenset()], ids=["hot", "normal"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A service with a file, with and without the hot path."""
    data = f"sqlite:///{tmp_path_factory.mktemp('stored')}/data.db"
    with live_server(Settings(data=data), hot=request.param) as live:
        yield live


@pytest.mark.parametrize("broken", BROKEN, ids=["garbage", "header", "chunk", "head"])
@pytest.mark.parametrize("path", ["vote", "viewer_state"])
@pytest.mark.parametrize("count", [1, 3])
def test_complete_requests_get_a_response_before_an_error(stored: LiveServer, broken: bytes, path: str, count: int):
    stored.empty()
    body = b'{"value":3}'
    with stored.client("viewer", user="5", channel="777") as viewer, stored.connect() as connection:
        request = (
            f"POST /v1/e/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: {viewer.headers['Authorization']}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall((request.encode() + body) * count + broken)
        answers = b""
        while piece := connection.recv(1 << 16):
            answers += piece
        read = viewer.get(path).json()

    statuses = re.findall(rb"HTTP/1\.1 (\d+) ", answers)
    assert [b"200"] * count == statuses[:-1]
    assert statuses[-1] in (b"400", b"431")
    assert 3 == (read["vote"] if path == "vote" else read["value"])
