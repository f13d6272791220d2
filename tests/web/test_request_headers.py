"""Headers of requests that are refused, and the header that every response carries."""

from __future__ import annotations

import pytest

from support.service import CLIENT_ID, LiveServer

SOCKET = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


def answer(live: LiveServer, *pieces: bytes) -> tuple[int, bytes]:
    """Send pieces of a request, and return the status and the whole response."""
    received = live.exchange(*pieces)
    return int(received.split(b" ", 2)[1]), received


def request(*headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} /v1/e/vote HTTP/1.1", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture
def credential(live: LiveServer) -> str:
    return f"Authorization: {live.client('viewer', user='1', channel='777').headers['Authorization']}"


def test_a_second_header_of_a_kind_that_is_single_gets_400(live: LiveServer, credential: str):
    # A second header of a kind that is single gets 400
    for name in ["Authorization", "Host", "authorization"]:
        second = f"{name}: {CLIENT_ID}"

        status, text = answer(live, request("Host: x", credential, second, "Connection: close"))

        assert (400, True) == (status, f"{name.lower()}: the header occurs more than once".encode() in text)

    # Other headers may be repeated
    repeated = request(
        "Host: x", credential, "X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 5.6.7.8", "Connection: close"
    )

    assert 200 == answer(live, repeated)[0]

    # A malformed request has the header that every response carries
    assert b"x-content-type-options: nosniff\r\n" in answer(live, b"FOO \xff HTTP/1.1\r\n\r\n")[1]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/ws", "", 400),
        ("/ws", "Sec-WebSocket-Version: 7\r\n", 400),
        ("/ws", f"{SOCKET}X: {'x' * 9_000}\r\n", 431),
        (f"/ws?{'x' * 9_000}", SOCKET, 414),
        ("/v1/nowhere", SOCKET, 404),
        ("/ws", f"{SOCKET}Content-Length: 1\r\n", 400),
        ("/ws", SOCKET, 101),
    ],
    ids=["no key", "version", "header", "path", "nowhere", "body", "accepted"],
)
def test_no_response_to_a_handshake_lets_browsers_guess_its_type(
    live: LiveServer, path: str, headers: str, status: int
):
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{headers}\r\n"
    with live.connect() as connection:
        connection.sendall(head.encode())
        received = connection.recv(65_536).lower()

    assert received.startswith(f"http/1.1 {status} ".encode())
    assert 1 == received.count(b"x-content-type-options: nosniff\r\n")
