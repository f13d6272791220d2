"""Every answer names its request by an id: the one that came with it, or one that the service made."""

from __future__ import annotations

import re
import socket
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.service import Client, LiveServer, live_server

FRESH = r"[0-9a-f]{8}-\d+"


def exchanged(live: LiveServer, *texts: bytes) -> list[bytes]:
    """The values of X-Request-Id in all that is answered on one connection until it ends, one text after the other."""
    with socket.create_connection(("127.0.0.1", urlsplit(live.url).port or 0), timeout=10) as connection:
        came = b""
        for text in texts:
            connection.sendall(text)
            came += connection.recv(65_536)
        while piece := connection.recv(65_536):
            came += piece
    return re.findall(rb"(?i)\r\nx-request-id: ([^\r]*)\r\n", came)


@pytest.mark.parametrize("taken", ["a", "x" * 64, "Az09._:+/=@-", "0af7651916cd43dd8448eb211c80319c"])
def test_an_id_that_comes_with_a_request_goes_back_with_its_answer(viewer, taken: str):
    assert taken == viewer().get("vote", headers={"X-Request-Id": taken}).headers["x-request-id"]


@pytest.mark.parametrize("refused", ["", "x" * 65, "a b", "a,b", '"a"', "a\tb", "über", "a;b", "{}"])
def test_for_what_is_no_id_the_service_makes_one(viewer, refused: str):
    answer = viewer().get("vote", headers={"X-Request-Id": refused.encode()})

    assert (200, True) == (answer.status_code, bool(re.fullmatch(FRESH, answer.headers["x-request-id"])))


def test_made_ids_differ(viewer):
    client = viewer()
    ids = [client.get("vote").headers["x-request-id"] for _ in range(50)]

    assert 50 == len(set(ids))
    assert all(re.fullmatch(FRESH, each) for each in ids)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/e/vote", 401),
        ("GET", "/v1/e/nothing", 404),
        ("PUT", "/v1/e/vote", 405),
        ("OPTIONS", "/v1/e/vote", 200),
        ("OPTIONS", "/", 405),
        ("GET", "/", 404),
        ("GET", "/schema/openapi.json", 200),
        ("GET", "/schema/other", 404),
        ("GET", "/_emulator/live", 200),
        ("GET", "/_emulator/metrics", 200),
        ("POST", "/_emulator/clock", 400),
        ("GET", "/_ns/blue/v1/e/vote", 401),
        ("DELETE", "/_ns/blue", 200),
        ("GET", "/_ns/a.b/v1/e/vote", 400),
        ("POST", "/v1/e/authtoken", 400),
    ],
)
def test_every_answer_carries_it(stranger: Client, method: str, path: str, status: int):
    answer = stranger.request(method, path, content=b"{", headers={"X-Request-Id": "mine"})

    assert (status, ["mine"]) == (answer.status_code, answer.headers.get_list("x-request-id"))


def test_a_streamed_answer_and_a_body_that_is_too_large_carry_it_too(admin: Client):
    answers = [
        admin.get("vote_logs", headers={"X-Request-Id": "mine"}),
        admin.post("vote", content=b" " * 70_000, headers={"X-Request-Id": "mine"}),
    ]

    assert [(200, "mine"), (413, "mine")] == [(each.status_code, each.headers["x-request-id"]) for each in answers]


def test_requests_that_come_at_once_on_one_connection_keep_their_own(live: LiveServer):
    requests = [
        b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: %d\r\n%s\r\n"
        % (number, b"Connection: close\r\n" if number == 9 else b"")
        for number in range(10)
    ]

    assert [b"%d" % number for number in range(10)] == exchanged(live, b"".join(requests))


def test_what_cannot_be_read_as_http_is_answered_with_one(live: LiveServer):
    (of_garbage,) = exchanged(live, b"\x16\x03\x01 this is no HTTP\r\n\r\n")
    (before, after) = exchanged(
        live, b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: first\r\n\r\n", b"\x16\x03\x01\r\n\r\n"
    )
    (of_large,) = exchanged(live, b"GET / HTTP/1.1\r\nX-Request-Id: mine\r\nX: " + b"x" * 66_000)

    assert (b"first", b"mine") == (before, of_large)
    assert all(re.fullmatch(FRESH.encode(), each) for each in (of_garbage, after))


def test_the_answer_to_a_handshake_carries_it_granted_or_refused(live: LiveServer):
    url = live.url.replace("http", "ws", 1)

    with connect(f"{url}/ws", additional_headers={"X-Request-Id": "mine"}) as granted:
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{url}/v1/none", additional_headers={"X-Request-Id": "mine"})

        assert granted.response is not None
        ids = [each.headers.get_all("X-Request-Id") for each in (granted.response, refused.value.response)]

    assert [["mine"], ["mine"]] == ids


def test_pages_may_read_it(stranger: Client):
    exposed = stranger.get("/v1/e/vote").headers["access-control-expose-headers"]

    assert {"X-Request-Id", "Retry-After"} == {each.strip() for each in exposed.split(",")}


def test_both_ways_to_a_hot_endpoint_carry_one():
    with live_server(hot=frozenset()) as live:
        answer = live.client("viewer", user="1", channel="777").get("vote")

    assert re.fullmatch(FRESH, answer.headers["x-request-id"])
