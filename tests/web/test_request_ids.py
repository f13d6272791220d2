"""Every response carries `X-Request-Id`: the id from the request, or a new one."""

from __future__ import annotations

import re

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.service import Client, LiveServer

GENERATED = r"[0-9a-f]{8}-\d+"


def request_ids(live: LiveServer, *texts: bytes) -> list[bytes]:
    """Send texts one by one on one connection, and return X-Request-Id of all responses until it closes."""
    with live.connect() as connection:
        received = b""
        for text in texts:
            connection.sendall(text)
            received += connection.recv(65_536)
        while chunk := connection.recv(65_536):
            received += chunk
    return re.findall(rb"(?i)\r\nx-request-id: ([^\r]*)\r\n", received)


def test_a_valid_request_id_is_repeated_and_another_one_replaced(viewer):
    # The response repeats the request id
    for valid in ["a", "x" * 64, "Az09._:+/=@-", "0af7651916cd43dd8448eb211c80319c"]:
        assert valid == viewer().get("vote", headers={"X-Request-Id": valid}).headers["x-request-id"]

    # An invalid request id is replaced
    for invalid in ["", "x" * 65, "a b", "a,b", '"a"', "a\tb", "über", "a;b", "{}"]:
        answer = viewer().get("vote", headers={"X-Request-Id": invalid.encode()})

        assert (200, True) == (answer.status_code, bool(re.fullmatch(GENERATED, answer.headers["x-request-id"])))

    # Generated ids are unique
    client = viewer()
    ids = [client.get("vote").headers["x-request-id"] for _ in range(50)]

    assert 50 == len(set(ids))
    assert all(re.fullmatch(GENERATED, each) for each in ids)


def test_every_response_carries_the_request_id(stranger: Client, admin: Client):
    # Every response carries the request id
    for method, path, status in [
        ("GET", "/v1/e/vote", 401),
        ("GET", "/v1/e/nothing", 404),
        ("PUT", "/v1/e/vote", 405),
        ("OPTIONS", "/v1/e/vote", 200),
        ("OPTIONS", "/", 405),
        ("GET", "/", 200),
        ("GET", "/schema/openapi.json", 200),
        ("GET", "/schema/other", 404),
        ("GET", "/_emulator/live", 200),
        ("GET", "/_emulator/metrics", 200),
        ("POST", "/_emulator/clock", 400),
        ("GET", "/_ns/blue/v1/e/vote", 401),
        ("DELETE", "/_ns/blue", 200),
        ("GET", "/_ns/a.b/v1/e/vote", 400),
        ("POST", "/v1/e/authtoken", 400),
    ]:
        answer = stranger.request(method, path, content=b"{", headers={"X-Request-Id": "mine"})

        assert (status, ["mine"]) == (answer.status_code, answer.headers.get_list("x-request-id")), path

    # A streamed response and a 413 carry the request id
    answers = [
        admin.get("vote_logs", headers={"X-Request-Id": "mine"}),
        admin.post("vote", content=b" " * 70_000, headers={"X-Request-Id": "mine"}),
    ]

    assert [(200, "mine"), (413, "mine")] == [(each.status_code, each.headers["x-request-id"]) for each in answers]


def test_malformed_http_has_an_id_of_its_own_or_the_one_that_it_sent(live: LiveServer):
    (before, after) = request_ids(
        live, b"GET /_emulator/live HTTP/1.1\r\nHost: x\r\nX-Request-Id: first\r\n\r\n", b"\x16\x03\x01\r\n\r\n"
    )
    (too_large,) = request_ids(live, b"GET / HTTP/1.1\r\nX-Request-Id: mine\r\nX: " + b"x" * 66_000)

    assert (b"first", b"mine") == (before, too_large)
    assert re.fullmatch(GENERATED.encode(), after)


def test_a_handshake_carries_the_request_id_accepted_or_rejected(live: LiveServer):
    url = live.url.replace("http", "ws", 1)

    with connect(f"{url}/ws", additional_headers={"X-Request-Id": "mine"}) as accepted:
        with pytest.raises(InvalidStatus) as rejected:
            connect(f"{url}/v1/none", additional_headers={"X-Request-Id": "mine"})

        assert accepted.response is not None
        ids = [each.headers.get_all("X-Request-Id") for each in (accepted.response, rejected.value.response)]

    assert [["mine"], ["mine"]] == ids
