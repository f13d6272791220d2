"""The sizes of bodies and ids (ruling W8)."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest

from emulator.config.settings import KIB, MIB, Limits, Settings
from support.service import Client, LiveServer, live_server


def padded(size: int, text: bytes = b'{"value":1,"key":"x"}') -> bytes:
    """A body of this many bytes that every endpoint can read."""
    return text + b" " * (size - len(text))


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "vote"), ("POST", "rank"), ("POST", "accumulate"), ("POST", "viewer_state"), ("POST", "authtoken"),
     ("PATCH", "channel_state"), ("PATCH", "extension_state"), ("POST", "json_store"), ("GET", "user_info"),
     ("DELETE", "vote")],
)  # fmt: skip
@pytest.mark.ruling("W8")
def test_a_body_of_64_kib_is_taken_and_one_byte_more_is_not(admin: Client, method: str, path: str):
    answers = [admin.request(method, path, content=padded(size)) for size in (64 * KIB, 64 * KIB + 1)]

    assert [200, 413] == [answer.status_code for answer in answers]
    assert "65536" in answers[1].json()["info"]


@pytest.mark.ruling("W8")
def test_the_limit_holds_for_a_body_of_unannounced_length(admin: Client):
    def pieces(size: int):
        yield from (padded(size)[start : start + 1000] for start in range(0, size, 1000))

    answers = [admin.post("vote", content=pieces(size)) for size in (64 * KIB, 64 * KIB + 1)]

    assert [200, 413] == [answer.status_code for answer in answers]


@pytest.mark.ruling("W8")
def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(live: LiveServer, admin: Client):
    credential = admin.headers["Authorization"]
    head = f"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: 999999999999\r\n\r\n"

    with socket.create_connection(("127.0.0.1", urlsplit(live.url).port or 0), timeout=10) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("store", ["viewer_state", "extension_viewer_state", "channel_config"])
@pytest.mark.ruling("W8")
def test_a_map_of_users_may_have_4_mib_and_not_one_byte_more(admin: Client, store: str):
    users = json.dumps({str(user): {"a": "x" * 4000} for user in range(1_000)}).encode()
    assert 200 == admin.patch(store, content=padded(4 * MIB, b'{"1":{}}')).status_code

    answers = [admin.patch(store, content=padded(size, users)) for size in (4 * MIB, 4 * MIB + 1)]

    assert [200, 413] == [answer.status_code for answer in answers]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"a":{}}', b'{"1":2}'])
@pytest.mark.ruling("W8")
def test_a_patch_that_is_no_map_of_users_may_have_64_kib(admin: Client, viewer, body: bytes):
    for client in (admin, viewer()):
        answers = [client.patch("viewer_state", content=padded(size, body)) for size in (64 * KIB, 64 * KIB + 1)]

        assert [200, 413] == [answer.status_code for answer in answers]


@pytest.mark.parametrize("role", ["viewer", "broadcaster", "backend"])
@pytest.mark.ruling("W8")
def test_only_an_admins_map_may_be_larger_than_other_bodies(live: LiveServer, role: str):
    users = json.dumps({str(user): {"a": "x" * 100} for user in range(1_000)})

    answer = live.client(role, user="777", channel="777").patch("viewer_state", content=users)

    assert 413 == answer.status_code


@pytest.mark.ruling("W8")
def test_the_limits_can_be_set():
    with live_server(Settings(limits=Limits(body=100, user_map=200))) as live:
        admin = live.client("admin", user="1", channel="777")
        votes = [admin.post("vote", content=padded(size)).status_code for size in (100, 101)]
        maps = [
            admin.patch("viewer_state", content=padded(size, b'{"1":{},"2":{}}')).status_code for size in (200, 201)
        ]

    assert ([200, 413], [200, 413]) == (votes, maps)


@pytest.mark.parametrize("path", ["rank", "accumulate", "json_store", "vote"])
@pytest.mark.ruling("W8")
def test_an_id_has_at_most_64_characters(admin: Client, path: str):
    bodies = {"rank": {"key": "x"}, "vote": {"value": 1}}

    answers = [
        admin.post(path, params={"id": "i" * length}, json=bodies.get(path, {})).status_code for length in (64, 65)
    ]

    assert [200, 400] == answers


@pytest.mark.parametrize("path", ["rank", "accumulate", "json_store"])
@pytest.mark.ruling("W8")
def test_an_id_that_is_no_polls_is_any_printable_text(admin: Client, path: str):
    body = {"key": "x"}

    printable = [
        admin.post(path, params={"id": each}, json=body).status_code for each in ("ä ?/", "é" * 64, "🎲", "'--")
    ]
    unprintable = [admin.post(path, params={"id": each}, json=body).status_code for each in ("a\nb", "\x00", "\u200b")]

    assert ({200}, {400}) == (set(printable), set(unprintable))


@pytest.mark.parametrize("path", ["rank", "accumulate", "json_store"])
def test_ids_that_look_alike_name_different_things(admin: Client, path: str):
    for number, name in enumerate(("a", "A", "á", "a\u0301", "a ")):
        admin.post(path, params={"id": name}, json={"key": "x", "n": number}).raise_for_status()

    answers = [admin.get(path, params={"id": name}).text for name in ("a", "A", "á", "a\u0301", "a ")]

    assert [1] * 5 == [answer.count('"x"') for answer in answers]


def test_a_head_that_never_ends_is_refused_and_holds_nobody_up(live: LiveServer, stranger: Client):
    with socket.create_connection(("127.0.0.1", urlsplit(live.url).port or 0), timeout=10) as connection:
        connection.sendall(b"GET /v1/e/vote HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 65_536)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n")
    assert b'"reason":"Headers too large"' in answer
    assert 200 == stranger.get("/_emulator/live").status_code


def test_headers_of_many_requests_on_one_connection_are_not_added_up(viewer):
    client = viewer()

    answers = {client.get("vote", headers={"X-Big": "a" * 40_000}).status_code for _ in range(4)}

    assert {200} == answers
