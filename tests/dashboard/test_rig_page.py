"""The page of the rig as HTML: its policy, what it says about an extension's pages, and parameters of any kind."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dashboard.rig_pages import rig
from support.filled_service import HOSTILE
from support.pages import fetched, main_of
from support.service import LiveServer

OK = b"HTTP/1.1 200 OK\r\n\r\n"
HELPER, SDK = b"<script src='/_emulator/platform-helper.js'>", b"<script src='/_emulator/sdk.js'>"
IMAGE = b"<img src='data:image/png;base64," + b"ab/c" * 15_000 + b"'>"
LONG = b" " * 131_072
"""More than the service reads."""


class Server:
    """Accepts connections, keeps the first line of each request, and sends one response per path."""

    def __init__(self, listener: socket.socket, answers: dict[str, bytes]) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
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
                    connection.sendall(self._answers.get(path, OK + HELPER + SDK))
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


def warning(live: LiveServer, url: str) -> str:
    """Return what the rig says of a page; nothing if the page may be shown and loads what it needs."""
    return "".join(re.findall('<p class="(?:warning|soft)"><b>.*?</b><br>(.*?)</p>', main_of(rig(live, url=url)), re.S))


def redirect(target: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {target}\r\n\r\n".encode("latin-1")


def head(line: str) -> bytes:
    """Return a good page with one more header."""
    return f"HTTP/1.1 200 OK\r\n{line}\r\n\r\n".encode("latin-1") + HELPER + SDK


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "no valid response"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "no valid response"),
        (b"HTTP/1.1 ok\r\n\r\n", "no valid response"),
        (b"HTTP/1.1 200 OK\r\nX: " + LONG, "no valid response"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "404"),
        (redirect("/"), "redirects"),
        (redirect("/caf\xe9"), ""),
        (redirect("http://[::\xff"), "no valid response"),
        (head("X-Frame-Options: deny, \xff"), "X-Frame-Options"),
        (head("Content-Security-Policy: default-src *; frame-ancestors 'none' \xff"), "frame-ancestors"),
        (head("Content-Security-Policy: frame-ancestors OWN"), ""),
        (OK + HELPER + SDK.replace(b"'/", b"'OWN/"), ""),
        (OK + HELPER.replace(b"'/", b"'http://127.0.0.1:1/") + SDK, "uses the service http://127.0.0.1:1"),
        (OK + HELPER.replace(b"'/", b"'OWN/_ns/a/") + SDK, "uses the service"),
        (OK + HELPER.replace(b"'/", b"'http://[/") + SDK, "uses the service"),
        (OK + HELPER, "sdk.js"),
        (OK + SDK, "platform-helper.js"),
        (OK + IMAGE, "platform-helper.js nor sdk.js"),
        (OK + IMAGE + HELPER + SDK, ""),
        (OK + LONG + SDK, ""),  # what it loads is not known
    ],
)
def test_a_page_that_no_frame_shows_or_that_lacks_a_script_is_named(live: LiveServer, answer: bytes, problem: str):
    with serving({"/": answer.replace(b"OWN", live.url.encode())}) as server:
        found = warning(live, f"{server.url}/")

    assert problem in found
    assert bool(problem) == bool(found)


def test_a_page_of_this_machine_is_fetched_once_with_its_query_and_without_its_fragment(live: LiveServer):
    hosts = ("localhost", "panel.localhost", "127.0.0.1")
    with serving() as server:
        for host in hosts:
            assert "" == warning(live, f"{server.url}/a%20b.html?q=1#top".replace("127.0.0.1", host))
    assert ["GET /a%20b.html?q=1 HTTP/1.1"] * len(hosts) == server.requests

    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # so that no other program answers at this port
        port = reserved.getsockname()[1]
        with serving(family=socket.AF_INET6, port=port):
            assert "" == warning(live, f"http://localhost:{port}/")
    for host in ("192.0.2.1", "10.0.0.1", "169.254.169.254", "0.0.0.0"):
        assert "connects only to this machine" in warning(live, f"http://{host}:8000/")


def test_a_redirect_is_followed_within_the_origin_only(live: LiveServer):
    with serving() as other, serving({"/to": redirect("/"), "/away": redirect(f"{other.url}/")}) as server:
        assert "" == warning(live, f"{server.url}/to")
        assert f"redirects to {other.url}/" in warning(live, f"{server.url}/away")

    assert [] == other.requests


@pytest.mark.long
def test_a_server_that_does_not_run_or_respond_is_named(live: LiveServer):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert "did not answer within" in warning(live, url)

    assert "connection refused" in warning(live, url)


@pytest.mark.parametrize(
    "name", ["url", "config", "live", "viewers", "client_id", "channel_id", "1.user_id", "1.theme"]
)
def test_hostile_parameters_are_texts(live: LiveServer, name: str):
    for word in (word for word in HOSTILE if "<" in word or '"' in word):
        answer = fetched(rig(live, **{"url": "http://127.0.0.1:1/", name: word}))

        assert answer.status_code in (200, 400)
        assert word not in answer.text
        assert "\n" not in answer.headers["content-security-policy"]


def test_the_policy_names_the_one_origin_of_the_frames(live: LiveServer):
    with_frames = fetched(rig(live, url="http://localhost:8000/panel.html?a=1", config="/config.html"))
    policy = fetched(rig(live)).headers["content-security-policy"]

    assert f"{policy}; frame-src http://localhost:8000" == with_frames.headers["content-security-policy"]
    assert "default-src 'none'" in policy


def test_production_has_no_rig(production: LiveServer):
    assert 404 == fetched(rig(production, url="http://127.0.0.1:1/")).status_code
