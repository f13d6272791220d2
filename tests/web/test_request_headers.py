"""Headers of requests that are refused, and the header that every response carries."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.service import CLIENT_ID, Client, LiveServer


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


@pytest.mark.parametrize("name", ["Authorization", "Host", "authorization"])
def test_a_second_header_of_a_kind_that_is_single_gets_400(live: LiveServer, credential: str, name: str):
    second = f"{name}: {CLIENT_ID}"

    status, text = answer(live, request("Host: x", credential, second, "Connection: close"))

    assert (400, True) == (status, f"{name.lower()}: the header occurs more than once".encode() in text)


def test_other_headers_may_be_repeated(live: LiveServer, credential: str):
    repeated = request(
        "Host: x", credential, "X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 5.6.7.8", "Connection: close"
    )

    assert 200 == answer(live, repeated)[0]


def test_a_socket_handshake_with_two_hosts_gets_400(live: LiveServer):
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{live.url.replace('http', 'ws', 1)}/ws", additional_headers={"Host": "other"}, compression=None)

    assert 400 == refused.value.response.status_code


@pytest.mark.parametrize(("count", "status"), [(100, 200), (101, 431)])
def test_a_request_has_at_most_100_headers(live: LiveServer, credential: str, count: int, status: int):
    more = [f"X-{number}: 1" for number in range(count - 3)]

    assert status == answer(live, request("Host: x", credential, "Connection: close", *more))[0]


def chunked(credential: str) -> bytes:
    head = ("Host: x", credential, "Transfer-Encoding: chunked", "Connection: close")
    return request(*head, method="POST", body=b'b\r\n{"value":1}\r\n0\r\n')


def test_trailers_do_not_replace_headers(live: LiveServer, credential: str):
    other = live.client("viewer", user="2", channel="777")
    trailer = f"Authorization: {other.headers['Authorization']}\r\n\r\n".encode()

    assert 200 == answer(live, chunked(credential) + trailer)[0]
    assert "vote" not in other.get("vote").json()


@pytest.mark.parametrize("trailer", [b"X: 1\r\n", b"a" * 1_000], ids=["many", "a long one"])
def test_trailers_are_limited_as_headers_are(live: LiveServer, credential: str, trailer: bytes):
    pieces = [trailer * (size // len(trailer)) for size in (30_000, 30_000, 6_000)]

    assert 431 == answer(live, chunked(credential), *pieces)[0]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/e/vote"),
        ("POST", "/v1/e/vote"),
        ("OPTIONS", "/v1/e/vote"),
        ("GET", "/nowhere"),
        ("GET", "/schema/openapi.json"),
        ("GET", "/_emulator/metrics"),
        ("GET", "/_emulator/sdk.js"),
    ],
)
def test_no_response_lets_browsers_guess_its_type(live: LiveServer, method: str, path: str):
    with Client(base_url=live.url) as client:
        assert "nosniff" == client.request(method, path).headers["x-content-type-options"]


def test_refusals_before_an_endpoint_do_not_let_browsers_guess_their_type(live: LiveServer):
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{live.url.replace('http', 'ws', 1)}/v1/nowhere", compression=None)

    assert "nosniff" == refused.value.response.headers["X-Content-Type-Options"]
    assert b"x-content-type-options: nosniff\r\n" in answer(live, b"FOO \xff HTTP/1.1\r\n\r\n")[1]
