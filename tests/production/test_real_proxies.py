"""Behind nginx and HAProxy, no request takes another user's credentials."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.sync.client import connect

from support.process import wait_until
from support.service import CLIENT_ID, LiveServer, live_server

DEPLOYING = Path(__file__).parent.parent.parent / "docs" / "deploying.md"
HAPROXY = """
global
    maxconn 100
defaults
    mode http
    timeout connect 5s
    timeout client 75s
    timeout server 75s
listen service
    bind unix@{socket}
    http-reuse always
    server service 127.0.0.1:{port}
"""


def nginx_of_the_page(folder: Path, port: str) -> str:
    """The configuration that the page prints, without TLS, on a socket in `folder`."""
    block, *_ = re.findall(r"^```nginx\n(.*?)^```", DEPLOYING.read_text(), re.DOTALL | re.MULTILINE)
    block = block.replace("listen 443 ssl;", f"listen unix:{folder}/socket;").replace(
        "127.0.0.1:8282", f"127.0.0.1:{port}"
    )
    block = re.sub(r"^ *ssl_.*\n", "", block, flags=re.MULTILINE)
    temporary = "".join(f"{kind}_temp_path {folder};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    return f"{user} pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {temporary}\n{block} }}"


def nginx_with_any_upgrade(folder: Path, port: str) -> str:
    """The same, but it passes on each `Upgrade`, as many pages on the web advise."""
    text = nginx_of_the_page(folder, port)
    text = re.sub(r"proxy_set_header Upgrade .*;", "proxy_set_header Upgrade $http_upgrade;", text)
    return re.sub(r"proxy_set_header Connection .*;", 'proxy_set_header Connection "upgrade";', text)


def haproxy(folder: Path, port: str) -> str:
    return HAPROXY.format(socket=folder / "socket", port=port)


PROXIES: dict[str, tuple[str, Callable[[Path, str], str]]] = {
    "nginx": ("nginx", nginx_of_the_page),
    "nginx with any Upgrade": ("nginx", nginx_with_any_upgrade),
    "haproxy": ("haproxy", haproxy),
}


class Proxy:
    """A running proxy in front of a service. It listens on a socket file, so that it needs no free port."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(str(self.file))
        return connection

    def is_up(self) -> bool:
        with suppress(OSError), self.connect():
            return True
        return False

    def exchange(self, request: bytes) -> bytes:
        """Send a request, and return all that comes until the proxy closes the connection."""
        received = b""
        with self.connect() as connection, suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(request)
            while more := connection.recv(65_536):
                received += more
        return received


@pytest.fixture(scope="module")
def service() -> Iterator[LiveServer]:
    with live_server() as live:
        yield live


@pytest.fixture(scope="module", params=PROXIES)
def proxy(
    request: pytest.FixtureRequest, service: LiveServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    program, config_of = PROXIES[request.param]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "config").write_text(config_of(folder, service.url.rpartition(":")[2]))
    options = {
        "nginx": ["-p", folder, "-c", folder / "config", "-g", "daemon off;"],
        "haproxy": ["-f", folder / "config"],
    }
    with subprocess.Popen([program, *options[program]]) as process:
        try:
            running = Proxy(folder / "socket")
            wait_until(lambda: running.is_up() or process.poll() is not None)
            assert process.poll() is None, f"{program} refuses its configuration"
            yield running
        finally:
            process.terminate()


def attack(method: str, *headers: str, chunked: bool = False) -> bytes:
    """A request whose body goes on, after more than the service parses at once, with the start of another request."""
    body = b"\r\n" * 4_096 + b"DELETE /v1/e/vote HTTP/1.1\r\nX: "
    if chunked:
        framing, body = "Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        framing = f"Content-Length: {len(body)}"
    lines = (f"{method} /v1/e/vote HTTP/1.1", "Host: localhost", *headers, framing, "", "")
    return "\r\n".join(lines).encode() + body


UPGRADE = "Connection: Upgrade"
KEY = ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
ATTACKS = {
    "foo": attack("POST", UPGRADE, "Upgrade: foo"),
    "h2c": attack("POST", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    "chunks": attack("POST", UPGRADE, "Upgrade: h2c", chunked=True),
    "list": attack("POST", UPGRADE, "Upgrade: websocket, foo"),
    "post of a websocket": attack("POST", UPGRADE, "Upgrade: websocket"),
    "websocket": attack("GET", UPGRADE, "Upgrade: WebSocket", *KEY),
    "websocket in chunks": attack("GET", UPGRADE, "Upgrade: websocket", *KEY, chunked=True),
    "connect": attack("CONNECT"),
}


@pytest.mark.slow
def test_no_body_takes_the_credentials_of_the_next_user(service: LiveServer, proxy: Proxy):
    service.empty()
    with service.client("viewer", user="1", channel="777") as viewer:
        viewer.post("vote", json={"value": 1}).raise_for_status()
    owner = service.client("broadcaster", user="777", channel="777").headers["Authorization"]
    head = f"GET /v1/e/vote HTTP/1.1\r\nHost: localhost\r\nAuthorization: {owner}\r\nConnection: close"

    for name, attack in ATTACKS.items():
        with proxy.connect() as attacker:
            with suppress(BrokenPipeError, ConnectionResetError):
                attacker.sendall(attack)
            attacker.recv(65_536)
            answers = [proxy.exchange(f"{head}\r\nX-Request-Id: r{number}\r\n\r\n".encode()) for number in range(5)]

        found = [re.findall(rb"(?i)x-request-id: (\S+)", each)[0].decode() for each in answers]
        assert [f"r{number}" for number in range(5)] == found, name
        assert all(each.startswith(b"HTTP/1.1 200 ") and b'"count":1' in each for each in answers), name


@pytest.mark.slow
def test_websockets_and_bodies_pass_through_the_proxy(service: LiveServer, proxy: Proxy):
    credential = service.client("viewer", user="1", channel="777").headers["Authorization"]
    body = b'{"value":1}'
    headers = f"Host: localhost\r\nAuthorization: {credential}\r\nContent-Length: {len(body)}\r\nConnection: close"

    voted = proxy.exchange(f"POST /v1/e/vote HTTP/1.1\r\n{headers}\r\n\r\n".encode() + body)
    with connect(f"ws://localhost/0.2.0/{CLIENT_ID}", sock=proxy.connect(), compression=None) as game:
        game.send("{}")
        answer = str(game.recv(timeout=60))

    assert voted.startswith(b"HTTP/1.1 200 ")
    assert answer.startswith("{")
