"""Limits of bodies, ids and headers (rulings W2, W8)."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from emulator.core.settings import KIB, MIB, Limits, Settings
from support.process import wait_until
from support.service import OTHER_ID, OTHER_SECRET, OURS, THEIRS, Client, LiveServer, in_production, live_server


def padded(size: int, text: bytes = b'{"value":1,"key":"x"}') -> bytes:
    """A body of `size` bytes that every endpoint accepts."""
    return text + b" " * (size - len(text))


def test_a_body_may_have_64_kib_and_a_query_1000_parameters(admin: Client):
    # A body may have 64 KiB
    for method, path in [
        ("POST", "vote"),
        ("POST", "rank"),
        ("POST", "accumulate"),
        ("POST", "viewer_state"),
        ("POST", "authtoken"),
        ("PATCH", "channel_state"),
        ("PATCH", "extension_state"),
        ("POST", "json_store"),
        ("GET", "user_info"),
        ("DELETE", "vote"),
    ]:
        answers = [admin.request(method, path, content=padded(size)) for size in (64 * KIB, 64 * KIB + 1)]

        assert [200, 413] == [answer.status_code for answer in answers], path
        assert "65536" in answers[1].json()["info"]

    # The limit applies to a chunked body
    def chunks(size: int):
        yield from (padded(size)[start : start + 1000] for start in range(0, size, 1000))

    answers = [admin.post("vote", content=chunks(size)) for size in (64 * KIB, 64 * KIB + 1)]

    assert [200, 413] == [answer.status_code for answer in answers]

    # A query has at most 1000 parameters
    answers = [admin.get("vote?" + "&".join(["a=%41"] * number)) for number in (1_000, 1_001)]

    assert [200, 400] == [answer.status_code for answer in answers]
    assert "the query has 1001 parameters; the limit is 1000" == answers[1].json()["info"]


@pytest.mark.parametrize(
    ("role", "line", "length", "status"),
    [
        ("admin", "POST /v1/e/vote", "999999999999", 413),
        *((role, "PATCH /v1/e/viewer_state", "65537", 413) for role in ("viewer", "broadcaster", "backend")),
        ("admin", "POST /v1/e/vote", "9" * 5_000, 400),
    ],
)
def test_a_refused_content_length_is_answered_before_the_body_is_sent(
    live: LiveServer, role: str, line: str, length: str, status: int
):
    credential = live.client(role, user="777", channel="777").headers["Authorization"]
    head = f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nContent-Length: {length}\r\n\r\n"

    with live.connect() as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65_536)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize("store", ["viewer_state", "extension_viewer_state", "channel_config"])
def test_a_map_of_users_may_have_4_mib(admin: Client, store: str):
    users = json.dumps({str(user): {"a": "x" * 4000} for user in range(1_000)}).encode()
    assert 200 == admin.patch(store, content=padded(4 * MIB, b'{"1":{}}')).status_code

    answers = [admin.patch(store, content=padded(size, users)) for size in (4 * MIB, 4 * MIB + 1)]

    assert [200, 413] == [answer.status_code for answer in answers]


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"a":{}}', b'{"1":2}'])
def test_any_other_patch_may_have_64_kib(admin: Client, viewer, body: bytes):
    for client in (admin, viewer()):
        answers = [client.patch("viewer_state", content=padded(size, body)) for size in (64 * KIB, 64 * KIB + 1)]

        assert [200, 413] == [answer.status_code for answer in answers]


@pytest.mark.parametrize(
    "body",
    [b"[%s]", b'{"a":[%s]}', b'{"1":[%s]', b'{"1":{},"2":5,"3":[%s]}'],
    ids=["array", "merge", "incomplete", "no map"],
)
def test_a_large_patch_that_is_not_a_map_is_refused_undecoded(admin: Client, body: bytes):
    answer = admin.patch("viewer_state", content=body % b",".join([b"[]"] * 50_000))

    assert (400 if body.count(b"{") > body.count(b"}") else 413) == answer.status_code


HUGE = [digits * "9" for digits in (19, 20, 4_300, 4_301, 60_000)]


def test_a_number_of_up_to_4300_digits_is_kept_and_a_longer_one_gets_400(admin: Client):
    # A number of over 4300 digits in a body gets 400
    for number in [f"-{HUGE[3]}", f"1e{HUGE[3]}", f"{HUGE[3]}.5"]:
        bodies = [
            ("POST", "vote", '{"value":%s}'),
            ("POST", "accumulate", "%s"),
            ("PATCH", "viewer_state", '{"1":{"a":%s}}'),
            ("PATCH", "channel_state", '[{"op":"add","path":"/a","value":%s}]'),
            ("PUT", "codes", '{"codes":[["A"]],"names":["A"],"x":%s}'),
        ]

        answers = [admin.request(method, path, content=body % number).status_code for method, path, body in bodies]

        assert [400] * 5 == answers

    # A number of up to 4300 digits in a body is kept
    for number in HUGE[:3]:
        admin.patch("channel_state", content=f'{{"a":{number}}}').raise_for_status()

        assert f'{{"a":{number}}}' == admin.get("channel_state").text

    # A huge number in a query does not fail
    for number in HUGE:
        paths = (
            "vote_logs?since={}",
            "vote_logs?limit={}",
            "accumulate?start={}",
            "codes/redeem?prize={}",
            "vote?id={}",
        )

        answers = {path: admin.get(path.format(number)).status_code for path in paths}

        assert {200, 400, 404, 405} >= set(answers.values()), answers


def test_the_limits_are_configurable():
    with live_server(Settings(limits=Limits(body=100, user_map=200))) as live:
        admin = live.client("admin", user="1", channel="777")
        votes = [admin.post("vote", content=padded(size)).status_code for size in (100, 101)]
        maps = [
            admin.patch("viewer_state", content=padded(size, b'{"1":{},"2":{}}')).status_code for size in (200, 201)
        ]

    assert ([200, 413], [200, 413]) == (votes, maps)


def test_an_endless_head_gets_431(live: LiveServer, stranger: Client):
    answer = live.exchange(b"GET /v1/e/vote HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 65_536)

    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n")
    assert b'"reason":"Headers too large"' in answer
    assert 200 == stranger.get("/_emulator/live").status_code


def test_the_limit_of_the_head_counts_each_request_separately(viewer):
    client = viewer()

    answers = {client.get("vote", headers={"X-Big": "a" * 40_000}).status_code for _ in range(4)}

    assert {200} == answers


def begun_upload(live: LiveServer, codes: bytes, **identity: Any) -> socket.socket:
    """Send all but the last byte of a PUT of codes; return when the service reads it."""
    running = len(live.service.shared.uploads)
    connection = live.connect()
    header = live.client("backend", **identity).headers["Authorization"]
    head = f"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {header}\r\n"
    connection.sendall(f"{head}Content-Length: {len(codes)}\r\n\r\n".encode() + codes[:-1])
    wait_until(lambda: len(live.service.shared.uploads) > running)
    return connection


def codes(name: str) -> bytes:
    return json.dumps({"codes": [[f"{name}{number}" for number in range(100)]], "names": [name]}).encode()


def test_an_upload_beyond_the_limit_gets_503_and_changes_nothing():
    with live_server(Settings(limits=Limits(uploads=2))) as live:
        uploads = [begun_upload(live, codes(name)) for name in "AB"]
        backend = live.client("backend")

        refused = [
            backend.put("codes", content=codes("C")),
            backend.post("codes/mark_from_list", json={"prizes": [0], "prize_limits": [1], "users": ["1"]}),
            backend.put(f"{live.url}/_emulator/seed", json={}),
            backend.put(f"{live.url}/_ns/other/v1/e/codes", content=codes("C")),
        ]

        assert [(503, "Too many uploads", "5")] * 4 == [
            (each.status_code, each.json()["reason"], each.headers["retry-after"]) for each in refused
        ]
        assert "2 uploads are running, which is the limit --max-uploads" in refused[0].json()["info"]
        for each, whole in zip(uploads, (codes("A"), codes("B")), strict=True):
            each.sendall(whole[-1:])
            assert each.recv(65_536).startswith(b"HTTP/1.1 200 ")
            each.close()
        assert ["B"] == backend.get("codes").json()["names"]
        assert 200 == backend.put("codes", content=codes("C")).status_code


def test_one_of_several_extensions_leaves_half_of_the_uploads_in_production_to_the_others():
    others = {"client_id": OTHER_ID, "key": OTHER_SECRET}
    with live_server(in_production(OURS, THEIRS, limits=Limits(uploads=4))) as live:
        uploads = [begun_upload(live, codes(name)) for name in "AB"]

        refused = live.client("backend").put("codes", content=codes("C"))
        accepted = live.client("backend", **others).put("codes", content=codes("C"))
        uploads += [begun_upload(live, codes(name), **others) for name in "DE"]
        full = live.client("backend", **others).put("codes", content=codes("F"))

        assert (503, 200, 503) == (refused.status_code, accepted.status_code, full.status_code)
        assert "this extension runs 2 uploads already, half of --max-uploads" in refused.json()["info"]
        assert "4 uploads are running, which is the limit --max-uploads" in full.json()["info"]
        for each in uploads:
            each.close()
        wait_until(lambda: not len(live.service.shared.uploads))
        assert 200 == live.client("backend").put("codes", content=codes("C")).status_code


def test_the_half_of_an_extension_is_rounded_up_and_the_only_one_takes_all():
    both, only = (OURS, THEIRS), (OURS,)
    for extensions, limit, share in ((both, 1, 1), (both, 3, 2), (only, 2, 2)):
        with live_server(in_production(*extensions, limits=Limits(uploads=limit))) as live:
            uploads = [begun_upload(live, codes(name)) for name in "AB"[:share]]

            assert 503 == live.client("backend").put("codes", content=codes("C")).status_code
            for each in uploads:
                each.close()


def test_other_calls_succeed_while_the_limit_of_uploads_is_reached():
    with live_server(Settings(limits=Limits(uploads=1))) as live:
        with begun_upload(live, codes("A")):
            voter = live.client("viewer", user="1", channel="777")
            answers = [voter.post("vote", json={"value": 1}), voter.get("codes/eligibility")]
        wait_until(lambda: not len(live.service.shared.uploads))

    assert [200, 200] == [each.status_code for each in answers]
