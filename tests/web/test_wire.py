"""Paths, bodies and responses on the wire (rulings W1, W2, W3, W7)."""

from __future__ import annotations

import json

import pytest

from support.service import Client, LiveServer

ALIASES = {
    "config": "all_config",
    "config/extension": "extension_config",
    "config/channel": "channel_config",
    "broadcast_extension": "extension_broadcast",
    "codes/eligible": "codes/eligibility",
    "unauthed/pin": "pin",
    "gamelink/pin": "link/pin",
    "gamelink/token": "link/pin",
    "vote/vote_logs": "vote_logs",
    "user-info": "user_info",
}


def exchange(live: LiveServer, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send raw bytes on a new connection; return status, headers and body of the response."""
    head, _, body = live.exchange(request).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_responds_like_the_specified_path(live: LiveServer, alias: str, method: str):
    live.freeze()
    admin = live.client("admin", user="9001", channel="777")

    by_alias, by_name = (admin.request(method, path, json={}) for path in (alias, ALIASES[alias]))

    volatile = {"token", "pin"}
    assert by_name.status_code == by_alias.status_code
    assert without(by_name.json(), volatile) == without(by_alias.json(), volatile)


@pytest.mark.parametrize("body", ['"{"', '"\\"{}\\""', '"{\\"value\\":NaN}"', '"value"', '""', '"[]"'])
def test_an_invalid_body_in_a_json_string_gets_400(viewer, body: str):
    assert 400 == viewer().post("vote", content=body).status_code


@pytest.mark.parametrize("text", [b'{"key":"\xf4\x90\x80\x80"}', b'"{\\"key\\":\\"\xf4\x90\x80\x80\\"}"'])
@pytest.mark.parametrize("path", ["rank", "viewer_state"])
def test_a_character_beyond_unicode_gets_400(viewer, path: str, text: bytes):
    answer = viewer().post(path, content=text)

    assert (400, "Malformed json body") == (answer.status_code, answer.json()["reason"])


def test_a_chunked_body_is_read_to_its_end(live: LiveServer, viewer):
    credential = viewer("5551").headers["Authorization"]
    head = f"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: {credential}\r\nConnection: close\r\n"

    status, headers, body = exchange(
        live, f'{head}Transfer-Encoding: chunked\r\n\r\n3\r\n{{"v\r\n8;a=b\r\nalue": 7\r\n1\r\n}}\r\n0\r\n\r\n'.encode()
    )

    assert (200, 7) == (status, json.loads(body)["vote"])
    assert "application/json" == headers["content-type"]


@pytest.mark.parametrize("path", ["viewer_state", "accumulate"])
def test_a_number_out_of_range_is_not_malformed_json(viewer, path: str):
    answer = viewer().post(path, content=b'{"a": 1e999}')

    assert (400, "Invalid body") == (answer.status_code, answer.json()["reason"])
    assert "[...]: number out of range" == answer.json()["info"]


@pytest.mark.parametrize(
    ("text", "stored"),
    [("1.0", "1.0"), ("-0.0", "-0.0"), ("1e22", "1e22"), ("18446744073709551616", "18446744073709551616"),
     ("-170141183460469231731687303715884105729", "-170141183460469231731687303715884105729"),
     ('"\\u00e9\\ud83c\\udfb2"', '"é🎲"'), ('"\\/"', '"/"'), ("[ 1 , 2 ]", "[1,2]")],
)  # fmt: skip
def test_json_values_are_stored_unchanged(viewer, text: str, stored: str):
    client = viewer("5551")

    client.post("viewer_state", content=f'{{"a": {text}}}').raise_for_status()
    client.patch("viewer_state", json=[{"op": "add", "path": "/b", "value": 1}]).raise_for_status()

    assert f'{{"a":{stored},"b":1}}' == client.get("viewer_state").text


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "accumulate", b"", b'{"data":[],"latest":0}'),
        ("GET", "user_ids?cursor=7a", b"", b'{"next":"0","results":[]}'),
        ("GET", "viewer_state?user_ids=1,2", b"", b"{}"),
        ("POST", "json_store", b"{}", b"{}"),
    ],
)
def test_an_empty_response_is_json(admin: Client, method: str, path: str, body: bytes, expected: bytes):
    answer = admin.request(method, path, content=body)

    assert (200, "application/json", expected) == (answer.status_code, answer.headers["content-type"], answer.content)


def test_an_id_may_be_percent_encoded(live: LiveServer, viewer):
    client = viewer("5551")

    client.post("vote?id=Poll$1", json={"value": 3})
    client.post("rank?id=a%20b%2Bc", json={"key": "x"})

    assert 1 == client.get("vote?id=Poll%241").json()["count"]
    assert "x" == client.post("rank?id=a+b%2bc", json={"key": "y"}).json()["original"]


def test_an_http_1_0_request_gets_a_response(live: LiveServer):
    status, headers, body = exchange(live, b"GET /v1/e/user_info HTTP/1.0\r\n\r\n")

    assert (401, "application/json") == (status, headers["content-type"])
    assert str(len(body)) == headers["content-length"]


def test_pipelined_requests_get_responses_in_order(live: LiveServer, viewer):
    credential = viewer("5551").headers["Authorization"]
    votes = b"".join(
        b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: %d\r\n%s\r\n%s"
        % (credential.encode(), len(body), b"Connection: close\r\n" if last else b"", body)
        for body, last in ((b'{"value":1}', False), (b'{"value":"?"}', False), (b'{"value":2}', True))
    )

    answers = live.exchange(votes)

    assert [b"200", b"400", b"200"] == [part[:3] for part in answers.split(b"HTTP/1.1 ")[1:]]
    assert answers.index(b'"vote":1') < answers.index(b'"vote":2')


def without(answer: object, names: set[str]) -> object:
    return {name: value for name, value in answer.items() if name not in names} if isinstance(answer, dict) else answer
