"""The hot path answers exactly like the router, and byte for byte like ASGI.

`HOT_PATH_EXAMPLES=2000 pytest tests/web/test_hot_path.py` compares more generated connections.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import urlsplit

import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.types import Receive, Scope, Send

from emulator.core.clock import Clock
from emulator.http.hot_path import HOT_ENDPOINTS, HotPath, Responder
from emulator.http.request import Request as OneRequest
from emulator.http.response import Reply
from support.examples import examples
from support.middleware import Middleware
from support.service import CLIENT_ID, SECRET, live_server

pytestmark = pytest.mark.slow

NOW = 1_900_000_000_000
PATHS = [
    *("vote", "//vote", "vote/", "rank", "accumulate", "channel_state", "vote%2F", "vot%65"),
    *("vote?id=global-x", "vote?id=Poll$1", "vote?id=", "vote?id=a.b", "vote?id=" + "i" * 65, "vote?channel_id=888"),
    *("rank?id=a%20b", "rank?id=%00", "accumulate?id=x&id=y", "accumulate?id=%F0%9F%8E%B2", "accumulate?%"),
    *("channel_state?channel_id=888", "channel_state?channel_id=%0A", "channel_state?user_ids=1,2"),
]
METHODS = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"]
BODIES = [
    *(b"", b"{}", b"[]", b"null", b"{", b"\xff", b'"text"', b"[" * 5_000, b" " * 65_537),
    *(
        b'{"value":3}',
        b'{"value":-99}',
        b'{"value":100}',
        b'{"value":1.0}',
        b'{"value":true}',
        b'{"value":5,"count":2}',
    ),
    *(b'{"key":"blue"}', b'{"key":"\\u00e9"}', b'{"key":5}', b'"{\\"value\\":7}"', b'{"value":1,"value":2}'),
    *(b'{"a":{"b":1}}', b'{"a":null}', b'{"a":NaN}', b'{"big":18446744073709551616}', b'{"a":"' + b"x" * 300 + b'"}'),
    b'[{"op":"add","path":"/round","value":4}]',
    b'[{"op":"add","path":"/deep/er","value":4},{"op":"test","path":"/a","value":1}]',
    b'[{"op":"remove","path":"/absent"}]',
]


def credentials() -> list[str | None]:
    claims_sets = [
        {"role": "viewer", "channel_id": "777", "user_id": "5551"},
        {"role": "viewer", "channel_id": "777", "opaque_user_id": "Aabc"},
        {"role": "viewer"},
        {"role": "broadcaster", "user_id": "777"},
        {"role": "admin", "channel_id": "777"},
        {"role": "backend"},
        {"role": "viewer", "exp": NOW // 1000 - 1},
        {"role": "viewer", "nbf": NOW // 1000 + 1},
        {"role": "viewer", "user_id": {}},
    ]
    tokens = [f"{CLIENT_ID} {jwt.encode(claims, SECRET)}" for claims in claims_sets]
    return [*tokens, f"other {tokens[0].split()[1]}", None, "", "Bearer x", f"{CLIENT_ID} a.b.c", tokens[0] + " x"]


class ThroughAsgi(Middleware):
    """An application around the service's, so that there is no hot path."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until a test moves it."""
    return Clock(lambda: NOW)


@pytest.fixture
def addresses(clock: Clock) -> Iterator[tuple[str, str]]:
    """URLs of two empty services with one clock: with the hot path, and with all requests through ASGI."""
    with live_server(clock=clock) as hot, live_server(clock=clock, wrap=ThroughAsgi) as ordinary:
        yield hot.url, ordinary.url


LAST = b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: last\r\nConnection: close\r\n\r\n"
"""Ends a connection, so that everything before it has been answered."""

EXTRA_HEADERS = [
    *(b"", b"Accept: */*\r\nAccept: text/html\r\n", b"connection: Keep-Alive\r\n", b"Expect: 100-continue\r\n"),
    *(b"Connection: close\r\n", b"Host: other\r\n"),
]
PIPELINED_HEADERS = [*EXTRA_HEADERS[:3], EXTRA_HEADERS[-1]]
"""Without what ends a connection in the middle of its requests, except an error."""
BROKEN = [
    *(b"GARBAGE\r\n\r\n", b"\0", b"GET\r\n", b"\x16\x03\x01\x02\x00", b"POST /v1/e/vote HTTP/9.9\r\n\r\n"),
    b"POST /v1/e/vote HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/e/rank HTTP/1.1\r\nHost: a\r\nContent-Length: 2x\r\n\r\n{}",
    b"POST /v1/e/vote HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/e/viewer_state HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}x",
    b"GET /v1/e/vote HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: y\r\n" % each for each in range(120)) + b"\r\n",
]
"""Ends of a connection that no HTTP server can answer but by an error."""


@st.composite
def raw_requests(draw: st.DrawFn, extra_headers: list[bytes]) -> bytes:
    """The bytes of one request, most often of a hot endpoint."""
    method, path = draw(st.sampled_from(sorted(HOT_ENDPOINTS)))
    target = draw(
        st.sampled_from([path] * 6 + [f"/v1/e/{each}" for each in PATHS] + ["http://x/v1/e/vote", "/v1/e/vote#f"])
    )
    method = draw(st.sampled_from([method] * 6 + METHODS))
    version = draw(st.sampled_from(["HTTP/1.1"] * 9 + ["HTTP/1.0"])) if extra_headers is EXTRA_HEADERS else "HTTP/1.1"
    credential = draw(st.sampled_from(credentials()[:3] * 4 + credentials()))
    body = draw(st.sampled_from(BODIES) | st.binary(max_size=40))
    head = (
        f"{method} {target} {version}\r\nHost: x\r\nX-Request-Id: {draw(st.sampled_from(['one', 'two']))}\r\n".encode()
    )
    if credential is not None:
        head += f"Authorization: {credential}\r\n".encode()
    head += draw(st.sampled_from([b""] * 12 + extra_headers))
    if draw(st.integers(0, 9)) == 0:
        return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(body), body) + b"0\r\n\r\n" * bool(body)
    length = draw(st.sampled_from([b"%d" % len(body)] * 19 + [b"0%d" % len(body)]))
    return head + b"Content-Length: " + length + b"\r\n\r\n" + body


@st.composite
def segments(draw: st.DrawFn) -> list[bytes]:
    """Some requests on one connection, cut into segments anywhere."""
    pipelined = st.lists(raw_requests(PIPELINED_HEADERS), min_size=2, max_size=4)
    data = b"".join(draw(st.lists(raw_requests(EXTRA_HEADERS), min_size=1, max_size=1) | pipelined))
    is_broken = draw(st.integers(0, 3)) == 0
    end = draw(st.sampled_from(BROKEN)) if is_broken else b""
    # A whole head may be answered before a malformed body arrives in a later segment, or not.
    last_cut = len(data) + len(end.partition(b"\r\n\r\n")[0])
    data += end
    cuts = sorted(draw(st.lists(st.integers(0, last_cut), max_size=4)))
    return [*(data[start:end] for start, end in pairwise([0, *cuts, len(data)])), *([] if is_broken else [LAST])]


def exchange(url: str, sent: list[bytes]) -> tuple[bytes, bool]:
    """Send the segments; return what is received, without dates, and whether the connection was reset.

    The service closes after a malformed request. If bytes arrive after that, the connection is reset, and what the
    client has not read is lost.
    """
    parts = urlsplit(url)
    received, was_reset = b"", False
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for segment in sent:
                connection.sendall(segment)
            while piece := connection.recv(1 << 16):
                received += piece
        except (BrokenPipeError, ConnectionResetError):
            was_reset = True
    return re.sub(rb"date: [^\r]*\r\n", b"", received), was_reset


def _without_own_id(received: bytes) -> bytes:
    """Leave out the ids that the service gives to requests without one."""
    return re.sub(rb"x-request-id: (?!one|two|last)[^\r]*\r\n", b"", received)


@pytest.mark.hypothesis
def test_hot_path_and_router_respond_byte_for_byte_alike(addresses: tuple[str, str], clock: Clock):
    compare_generated_connections(*addresses, clock)


def compare_generated_connections(hot: str, ordinary: str, clock: Clock) -> None:
    @settings(
        max_examples=int(os.environ.get("HOT_PATH_EXAMPLES") or examples(150)),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    )
    @given(segments())
    def compare(sent: list[bytes]) -> None:
        clock.advance(100)  # so that callers are sometimes over the rate of production
        (first, first_was_reset), (second, second_was_reset) = exchange(ordinary, sent), exchange(hot, sent)
        first, second = _without_own_id(first), _without_own_id(second)
        if first_was_reset or second_was_reset:
            assert first.startswith(second) or second.startswith(first)
        else:
            assert [first] == [second]

    compare()


def test_hot_path_and_router_order_verdict_and_hint_headers_alike(addresses: tuple[str, str]):
    head = f"GET /v1/e/vote?channel_id=888 HTTP/1.1\r\nHost: x\r\nAuthorization: {credentials()[0]}\r\n"

    (first, _), (second, _) = (exchange(url, [f"{head}\r\n".encode(), LAST]) for url in addresses)

    assert b"x-emulator-production: " in first
    assert b"x-emulator-hint: " in first
    assert _without_own_id(first) == _without_own_id(second)


class Unsendable(HotPath):
    """A hot path whose replies have a status that HTTP does not know."""

    def find(self, method: bytes, path: bytes) -> Responder | None:
        return self._answer if path == b"/v1/e/vote" else None

    async def _answer(self, request: OneRequest) -> Reply:
        return Reply(999, b"{}", cors=False)


def test_a_reply_that_cannot_be_written_ends_its_connection():
    with live_server(hot_path=Unsendable) as live:
        received, _ = exchange(live.url, [b"GET /v1/e/vote HTTP/1.1\r\nHost: x\r\n\r\n"])

    assert received == b""
