"""Requests with `Upgrade`: each has one response, and no byte of its body becomes another request.

A request without it to the address of a WebSocket gets 426, which says what is missing (RFC 9110).
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest

from emulator.core.settings import Settings
from emulator.http.hot_path import HOT_ENDPOINTS
from support.pusher_client import KEY as PAGE_KEY
from support.pusher_client import QUERY
from support.service import CLIENT_ID, Client, LiveServer, live_server

IGNORED = {
    "foo": ("Connection: Upgrade", "Upgrade: foo"),
    "h2c": ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"),
    "websocket and another": ("Connection: Upgrade", "Upgrade: websocket, foo"),
    "another and websocket": ("Connection: Upgrade", "Upgrade: foo, websocket"),
    "a version": ("Connection: Upgrade", "Upgrade: websocket/13"),
    "repeated": ("Connection: Upgrade", "Upgrade: websocket", "Upgrade: websocket"),
    "two headers": ("Connection: Upgrade", "Upgrade: foo", "Upgrade: websocket"),
    "many tokens": ("Connection: keep-alive , x,  uPGRADE", "Upgrade: h2c"),
    "two connections": ("Upgrade: foo", "Connection: upgrade", "Connection: keep-alive"),
    "whitespace": ("CONNECTION:\tupgrade\t", "uPGRADE: \t foo \t"),
    "the last request": ("Connection: upgrade, close", "Upgrade: h2c"),
    "empty": ("Connection: upgrade", "Upgrade:"),
    "not asked for": ("Upgrade: websocket",),
}
"""Headers that ask for no WebSocket: the service must answer as if it had no `Upgrade`."""
SOME = ("foo", "h2c", "websocket and another", "the last request")
HANDSHAKE = ("Connection: Upgrade", "Upgrade: websocket")
KEY = ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
SMUGGLED = b"GET /_emulator/live HTTP/1.1\r\n\r\n"
VOTE = b'{"value":1}'


def framed(body: bytes, *, chunked: bool) -> tuple[str, bytes]:
    """Return a header and the body as it follows the head."""
    if not chunked:
        return f"Content-Length: {len(body)}", body
    half = len(body) // 2
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part]
    return "Transfer-Encoding: chunked", b"".join((*chunks, b"0\r\nUpgrade: websocket\r\n\r\n"))


def request(method: str, path: str, id: str, *headers: str, version: str = "1.1", body: bytes = b"") -> bytes:
    lines = (f"{method} {path} HTTP/{version}", "Host: localhost", f"X-Request-Id: {id}", *headers)
    return "\r\n".join((*lines, "", "")).encode() + body


BEFORE = request("GET", "/_emulator/live", "before")
AFTER = request("GET", "/_emulator/live", "after", "Connection: close")


async def exchange(live: LiveServer, pieces: Iterable[bytes]) -> bytes:
    """Send pieces so that the service, in whose event loop this runs, reads each on its own; return all responses."""
    loop = asyncio.get_running_loop()
    received = b""
    with live.connect() as connection:
        connection.setblocking(False)
        with suppress(ConnectionResetError, BrokenPipeError):  # refused before all was sent
            for piece in pieces:
                await loop.sock_sendall(connection, piece)
                for _ in range(3):
                    await asyncio.sleep(0)
        with suppress(ConnectionResetError):
            while more := await loop.sock_recv(connection, 65_536):
                received += more
    return received


def answers(responses: bytes) -> list[tuple[str, str]]:
    """The status and the request id of each response."""
    heads = re.findall(rb"HTTP/1\.1 (\d+) .*?x-request-id: (\S+)", responses, re.DOTALL | re.IGNORECASE)
    assert len(heads) == responses.count(b"HTTP/1.1 "), responses
    return [(status.decode(), id.decode()) for status, id in heads]


def pieces_of(head: bytes, body: bytes, after: bytes) -> Iterator[list[bytes]]:
    """Cut the body at and beside its ends and in its middle, with a request before and one after it."""
    for cut in sorted({0, 1, len(body) // 2, len(body) - 1, len(body)}):
        yield [BEFORE + head + body[:cut], body[cut:] + after]


@pytest.fixture(scope="module", params=[HOT_ENDPOINTS, frozenset()], ids=["hot", "normal"])
def either(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """A service with and without the hot path."""
    with live_server(Settings(), hot=request.param) as live:
        yield live


def check_ignored(live: LiveServer, method: str, path: str, body: bytes, names: Iterable[str] = IGNORED) -> None:
    credential = f"Authorization: {live.client('viewer', user='1', channel='777').headers['Authorization']}"

    async def check(upgrade: tuple[str, ...], version: str, chunked: bool) -> None:
        framing, sent = framed(body, chunked=chunked)
        is_last = version == "1.0" or "close" in upgrade[0]
        after = b"" if is_last else AFTER
        plain = request(method, path, "it", *["Connection: close"] * is_last, credential, framing, version=version)
        expected = answers(await exchange(live, [BEFORE + plain + sent + after]))
        assert ["before", "it", "after"][: len(expected)] == [id for _, id in expected]
        assert len(expected) == 3 - is_last
        head = request(method, path, "it", *upgrade[:1], credential, framing, *upgrade[1:], version=version)
        for pieces in pieces_of(head, sent, after):
            found = answers(await exchange(live, pieces))
            assert expected == found, pieces
        if body is VOTE:
            assert expected[1:] == answers(await exchange(live, [bytes([each]) for each in head + sent + after]))

    async def check_framings(upgrade: tuple[str, ...]) -> None:
        framings = (("1.1", False), ("1.1", True), ("1.0", False))
        await asyncio.gather(*(check(upgrade, *framing) for framing in framings))

    for name in names:
        live.run(check_framings(IGNORED[name]))


def test_an_upgrade_to_no_websocket_is_ignored_wherever_its_body_is_cut(either: LiveServer):
    check_ignored(either, "POST", "/v1/e/vote", VOTE)


@pytest.mark.slow
def test_an_upgrade_is_ignored_in_requests_of_every_method_and_with_a_request_inside(live: LiveServer):
    check_ignored(live, "POST", "/v1/e/viewer_state", SMUGGLED, SOME)
    for method, path in (("GET", "codes"), ("HEAD", "codes"), ("PUT", "codes"), ("OPTIONS", "vote"), ("PURGE", "vote")):
        check_ignored(live, method, f"/v1/e/{path}", b"x", SOME[:2])


def test_a_post_that_asks_for_a_websocket_is_a_post(live: LiveServer):
    framing, body = framed(SMUGGLED, chunked=False)
    head = request("POST", "/v1/e/vote", "it", *HANDSHAKE, framing)

    for pieces in pieces_of(head, body, AFTER):
        assert [("200", "before"), ("401", "it"), ("200", "after")] == answers(live.run(exchange(live, pieces)))


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
@pytest.mark.parametrize(
    "headers",
    [HANDSHAKE, ("upgrade: WebSocket ", "CONNECTION: keep-alive,upgrade"), HANDSHAKE + KEY],
    ids=["handshake", "spelling", "key"],
)  # fmt: skip
def test_a_handshake_with_a_body_is_refused_wherever_it_is_cut(live: LiveServer, headers: tuple[str], chunked: bool):
    framing, body = framed(SMUGGLED, chunked=chunked)
    head = request("GET", "/ws", "it", *headers, framing)

    for pieces in pieces_of(head, body, b""):
        assert [("200", "before"), ("400", "it")] == answers(live.run(exchange(live, pieces)))


def test_a_handshake_of_http_1_0_is_ignored(live: LiveServer):
    responses = live.exchange(request("GET", "/ws", "it", *HANDSHAKE, *KEY, version="1.0"))

    assert [("426", "it")] == answers(responses)


def test_a_handshake_waits_for_earlier_responses(live: LiveServer):
    handshake = request("GET", f"/0.2.0/{CLIENT_ID}", "it", *HANDSHAKE, *KEY)

    responses = live.exchange(request("GET", "/v1/e/polls", "before") + handshake)

    assert [("401", "before"), ("400", "it")] == answers(responses)


@pytest.mark.parametrize("headers", [(), HANDSHAKE, ("Content-Length: 58",)], ids=["plain", "upgrade", "body"])
def test_connect_is_refused_once_and_the_connection_closes(live: LiveServer, headers: tuple[str, ...]):
    head = request("CONNECT", "localhost:80", "it", *headers)

    for pieces in pieces_of(head, SMUGGLED, b""):
        assert [("200", "before"), ("400", "it")] == answers(live.run(exchange(live, pieces)))


def test_hundreds_of_upgrades_in_one_piece_have_a_response_each(live: LiveServer):
    framing, body = framed(VOTE, chunked=False)
    upgrades = b"".join(b"GET /x HTTP/1.1\r\nUpgrade:\r\nConnection:upgrade\r\n\r\n" for _ in range(300))

    responses = live.exchange(request("POST", "/v1/e/vote", "it", *IGNORED["h2c"], framing) + body + upgrades + AFTER)

    assert ["401", *["404"] * 300, "200"] == [status for status, _ in answers(responses)]


@pytest.mark.parametrize("fold", ["\r\n websocket", "\r\n\tfoo"])
def test_a_folded_upgrade_is_refused(live: LiveServer, fold: str):
    responses = live.exchange(BEFORE + request("GET", "/ws", "it", "Connection: Upgrade", f"Upgrade:{fold}"))

    assert ["200", "400"] == [status for status, _ in answers(responses)]


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.parametrize("chunked", [(), ("--header", "Transfer-Encoding: chunked")], ids=["length", "chunks"])
def test_curl_posts_while_it_asks_for_http_2(live: LiveServer, chunked: tuple[str, ...]):
    credential = live.client("viewer", user="1", channel="777").headers["Authorization"]
    command = ["curl", "-sS", "--http2", "--max-time", "10", *chunked, "--header", f"Authorization: {credential}"]

    done = subprocess.run(
        [*command, "--data", '{"value":1}', "--write-out", "\n%{http_code}", f"{live.url}/v1/e/vote"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout.endswith("\n200")


def test_a_chunk_header_counts_toward_the_limit_of_a_head(live: LiveServer):
    header = live.client("viewer", user="1", channel="777").headers["Authorization"]
    start = f"POST /v1/e/vote HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n".encode()
    for before in (b"", b"1\r\n \r\n"):
        answer = live.exchange(start + b"Transfer-Encoding: chunked\r\n\r\n" + before + b"1;a=" + b"x" * 80_000)

        assert answer.startswith(b"HTTP/1.1 431 ")


def test_a_trailer_that_closes_the_connection_is_obeyed(live: LiveServer):
    request = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n"
    body = b"Transfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n"

    answer = live.exchange(request + body + request + b"\r\n")

    assert 1 == answer.count(b"HTTP/1.1 404 ")


ADDRESSES = [
    "/ws",
    "/ws/",
    "/0.2.0/my-extension",
    "/0.2.0/projection/my-extension?x=1",
    f"/app/{PAGE_KEY}{QUERY}",
    "/_ns/other/ws",
    f"/_ns/other/app/{PAGE_KEY}",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("headers", [{}, {"Upgrade": "h2c", "Connection": "Upgrade"}], ids=["none", "another"])
def test_a_request_without_upgrade_to_a_socket_gets_426(stranger: Client, address: str, headers: dict[str, str]):
    answer = stranger.get(address, headers=headers)

    given = (answer.status_code, answer.headers["upgrade"], answer.headers["connection"].lower())
    assert (426, "websocket", "upgrade") == given
    assert "Upgrade Required" == answer.json()["reason"]
    assert "Upgrade: websocket" in answer.json()["info"]
    assert (426, b"") == ((head := stranger.head(address)).status_code, head.content)
    assert 404 == stranger.post(address).status_code


@pytest.mark.parametrize("address", ["/wsx", "/0.2.0", "/app", "/v1/e/ws", "/_emulator/ws", "/ws/a/b/c/d/e/f"])
def test_other_unknown_paths_are_still_not_found(stranger: Client, address: str):
    assert 404 == stranger.get(address).status_code
