"""Pipelined requests: each has a response, in order, and few are read ahead."""

from __future__ import annotations

import socket
from threading import Thread
from urllib.parse import urlsplit

from emulator.server import http_protocol
from support.service import LiveServer, live_server

REQUEST = b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\n\r\n"


def connect(live: LiveServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(live.url).port or 0), timeout=20)


def test_each_of_2000_pipelined_requests_has_a_response_in_order(live: LiveServer):
    with connect(live) as connection:
        requests = (f"GET /_emulator/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: r{n}\r\n\r\n" for n in range(2_000))
        sending = Thread(target=connection.sendall, args=("".join(requests).encode(),))
        sending.start()
        answers = b""
        while answers.count(b'{"status":"live"}') < 2_000:
            answers += connection.recv(1 << 20)
        sending.join()

    ids = [line.split(b": ")[1] for line in answers.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert [f"r{n}".encode() for n in range(2_000)] == ids


def test_pipelined_requests_are_not_read_far_ahead(monkeypatch):
    longest = 0

    class Observed(http_protocol.Protocol):
        def on_headers_complete(self) -> None:
            nonlocal longest
            super().on_headers_complete()
            longest = max(longest, len(self.pipeline))

    monkeypatch.setattr("emulator.server.http_server.Protocol", Observed)
    with live_server() as live, connect(live) as connection:
        sending = Thread(target=connection.sendall, args=(REQUEST * 10_000,))
        sending.start()
        answers = b""
        while answers.count(b'{"status":"live"}') < 10_000:
            answers += connection.recv(1 << 20)
        sending.join()

    assert 0 < longest < 1_000
