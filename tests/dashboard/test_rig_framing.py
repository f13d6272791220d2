"""What the service fetches for the rig: once, from this machine only, and within limits."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from emulator.clock import processor_time
from emulator.dashboard.rig import framing
from emulator.dashboard.rig.framing import MAX_RESPONSE, Finding, check_page

SDK = b"<script src='/_emulator/sdk.js'></script>"
OWN = "http://127.0.0.1:8282"
PAGE = b"HTTP/1.1 200 OK\r\n\r\n<script src='/_emulator/platform-helper.js'></script><script src='/_emulator/sdk.js'>"


class Server:
    """Accepts connections, keeps the first line of each request, and sends one response."""

    def __init__(self, listener: socket.socket, answers: dict[str, bytes]) -> None:
        self.port = listener.getsockname()[1]
        self.requests: list[str] = []
        self._listener = listener
        self._answers = answers

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                line, *_ = connection.recv(4_096).decode().splitlines() or [""]
                self.requests.append(line)
                path = line.split(" ")[1] if line else ""
                try:
                    connection.sendall(self._answers.get(path, PAGE))
                except OSError:
                    continue


@contextmanager
def serving(
    answers: dict[str, bytes] | None = None, family: socket.AddressFamily = socket.AF_INET, port: int = 0
) -> Iterator[Server]:
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.create_server((host, port), family=family) as listener:
        server = Server(listener, answers or {})
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def check(url: str) -> Finding:
    return asyncio.run(check_page(url, OWN))


def redirect(target: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {target}\r\n\r\n".encode()


def test_a_page_with_a_long_inline_image_is_checked_at_once():
    image = b"HTTP/1.1 200 OK\r\n\r\n<img src='data:image/png;base64," + b"ab/c" * 15_000 + b"'>"
    with serving({"/with": image + PAGE.partition(b"\r\n\r\n")[2], "/without": image}) as server:
        began = processor_time()
        kinds = [check(f"http://127.0.0.1:{server.port}/{name}").kind for name in ("with", "without")]

    assert ["fine", "scriptless"] == kinds
    assert processor_time() - began < 1


def test_a_page_is_fetched_once_with_its_query_and_without_its_fragment():
    with serving() as server:
        assert "fine" == check(f"http://127.0.0.1:{server.port}/a b.html?q=1#top".replace(" ", "%20")).kind

    assert ["GET /a%20b.html?q=1 HTTP/1.1"] == server.requests


@pytest.mark.parametrize("host", ["localhost", "panel.localhost", "127.0.0.1"])
def test_every_name_of_this_machine_is_contacted(host: str):
    with serving() as server:
        assert "fine" == check(f"http://{host}:{server.port}/").kind


def test_localhost_is_also_its_other_address():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # so that no other program answers at this port
        port = reserved.getsockname()[1]
        with serving(family=socket.AF_INET6, port=port):
            assert "fine" == check(f"http://localhost:{port}/").kind


@pytest.mark.parametrize("host", ["192.0.2.1", "10.0.0.1", "169.254.169.254", "0.0.0.0"])
def test_another_machine_is_not_contacted(host: str, monkeypatch: pytest.MonkeyPatch):
    async def connect(*args: object, **settings: object) -> None:
        raise AssertionError("it was contacted")

    monkeypatch.setattr(asyncio, "open_connection", connect)

    assert "unchecked" == check(f"http://{host}:8000/").kind


def test_a_redirect_within_the_origin_is_followed():
    with serving({"/panel": redirect("/panel/")}) as server:
        assert "fine" == check(f"http://127.0.0.1:{server.port}/panel").kind

    assert 2 == len(server.requests)


def test_a_redirect_to_another_origin_is_not_followed():
    with serving() as other, serving({"/": redirect(f"http://127.0.0.1:{other.port}/")}) as server:
        finding = check(f"http://127.0.0.1:{server.port}/")

    assert ("failed", []) == (finding.kind, other.requests)
    assert f"redirects to http://127.0.0.1:{other.port}/" in finding.text


def test_redirects_end():
    with serving({"/": redirect("/")}) as server:
        assert "failed" == check(f"http://127.0.0.1:{server.port}/").kind

    assert 3 == len(server.requests)


def test_at_most_64_kib_of_a_response_are_read():
    late = b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 2 * MAX_RESPONSE + b"/_emulator/sdk.js"
    with serving({"/": late}) as server:
        assert "fine" == check(f"http://127.0.0.1:{server.port}/").kind  # what it loads is not known


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH_9.9\r\n\r\n", b"HTTP/1.1 ok\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2 * MAX_RESPONSE],
    ids=["nothing", "ssh", "status", "headers"],
)
def test_a_response_that_is_not_http_is_named(answer: bytes):
    with serving({"/": answer}) as server:
        finding = check(f"http://127.0.0.1:{server.port}/")

    assert ("failed", True) == (finding.kind, "no valid response" in finding.text)


def test_a_server_that_does_not_run_is_named():
    with serving() as server:
        pass
    finding = check(f"http://127.0.0.1:{server.port}/")

    assert ("failed", True) == (finding.kind, "connection refused" in finding.text)


def test_a_server_that_does_not_respond_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(framing, "TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        finding = check(f"http://127.0.0.1:{listener.getsockname()[1]}/")

    assert "The server of this page did not answer within 0.1 s." == finding.text


def test_a_status_that_is_an_error_is_named():
    with serving({"/": b"HTTP/1.1 404 Not Found\r\n\r\n"}) as server:
        assert "The server returns 404 for this page." == check(f"http://127.0.0.1:{server.port}/").text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<script src='http://127.0.0.1:8282/_emulator/platform-helper.js'></script>" + SDK, "fine"),
        (b"<script src=http://localhost:8282/_emulator/platform-helper.js></script>" + SDK, "fine"),
        (b"<script src='/_emulator/platform-helper.js'></script>" + SDK, "fine"),
        (b"<script src='/_emulator/platform-helper.js'></script>", "scriptless"),
        (b"<script src='http://127.0.0.1:8283/_emulator/platform-helper.js'></script>", "elsewhere"),
        (b"<script src='http://127.0.0.1:8282/_ns/a/_emulator/platform-helper.js'></script>", "elsewhere"),
        (b"<script src='http://[/_emulator/platform-helper.js'></script>", "elsewhere"),
        (b"<script src='http://127.0.0.1:8282/_emulator/sdk.js'></script>", "scriptless"),
        (b"<script src='app.js'></script>", "scriptless"),
    ],
)
def test_a_page_without_the_helper_of_this_service_is_named(body: bytes, kind: str):
    with serving({"/": b"HTTP/1.1 200 OK\r\n\r\n" + body}) as server:
        assert kind == check(f"http://127.0.0.1:{server.port}/").kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Security-Policy: frame-ancestors 'none' \xff\xc3\xa9\r\n\r\n", "forbidden"),
        (b"HTTP/1.1 200 OK\r\nX-Frame-Options: deny, \xff\r\n\r\n", "forbidden"),
        (b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\n\r\n", "fine"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[::\xff\r\n\r\n", "failed"),
    ],
)
def test_a_header_that_is_not_ascii_breaks_nothing(answer: bytes, kind: str):
    with serving({"/": answer}) as server:
        assert kind == check(f"http://127.0.0.1:{server.port}/").kind
