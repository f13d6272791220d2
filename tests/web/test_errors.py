"""Errors have one format everywhere, with the same error_of in `errors` and in `reason` and `info` (ruling W4)."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

from emulator.config.settings import Settings
from support.service import Client, LiveServer, live_server

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    500: "Internal Service Error",
    503: "Service Unavailable",
}


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the body of an error, after checking its format."""
    body = answer.json()
    assert "application/json" == answer.headers["content-type"]
    assert {"errors", "reason", "info"} == set(body)
    (entry,) = body["errors"]
    assert {"status": answer.status_code, "title": TITLES[answer.status_code], "detail": body["info"]} == entry
    assert body["reason"]
    assert body["info"]
    return dict(body)


@pytest.mark.parametrize(
    ("status", "method", "path", "body", "role"),
    [
        (400, "POST", "vote", b"{", "viewer"),
        (400, "POST", "vote", b'{"value":100}', "viewer"),
        (400, "POST", "vote", b'{"value":"1"}', "viewer"),
        (400, "GET", "vote?id=a.b", b"", "viewer"),
        (400, "GET", "accumulate?start=soon", b"", "admin"),
        (400, "POST", "viewer_state", b"[]", "viewer"),
        (400, "PATCH", "viewer_state", b'[{"op":"test","path":"/a","value":1}]', "viewer"),
        (403, "DELETE", "vote", b"", "viewer"),
        (403, "POST", "extension_state", b"{}", "broadcaster"),
        (404, "GET", "json_store?id=absent", b"", "viewer"),
        (404, "GET", "vote_config?id=absent", b"", "viewer"),
        (404, "GET", "nothing", b"", "viewer"),
        (404, "POST", "", b"{}", "viewer"),
        (404, "DELETE", "//..//x/%00/%ff", b"", "viewer"),
        (405, "PUT", "vote", b"{}", "viewer"),
        (405, "POST", "all_state", b"{}", "admin"),
        (405, "PATCH", "user_info", b"{}", "viewer"),
        (405, "HEAD", "user_info", b"", "viewer"),
        (405, "TRACE", "vote", b"", "viewer"),
        (413, "POST", "vote", b" " * 65_537, "viewer"),
        (413, "GET", "vote", b" " * 65_537, "viewer"),
    ],
)
@pytest.mark.ruling("W4")
def test_every_error_has_the_same_format(live: LiveServer, status: int, method: str, path: str, body: bytes, role: str):
    answer = live.client(role, user="1", channel="777").request(method, path, content=body)

    assert status == answer.status_code
    if method != "HEAD":
        error_of(answer)


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/e", "/v1/e/", "/v2/e/vote", "/v1/vote", "/_emulator/x", "/favicon.ico"],
)
@pytest.mark.ruling("W4")
def test_an_unknown_path_is_404(stranger: Client, path: str):
    for method in ("GET", "POST", "DELETE"):
        answer = stranger.request(method, path)

        assert 404 == answer.status_code
        error_of(answer)


@pytest.mark.ruling("W4")
def test_a_missing_credential_is_401_with_the_expected_format(stranger: Client):
    error = error_of(stranger.get("/v1/e/vote"))

    assert "User was unauthorized to access this resource" == error["reason"]
    assert "missing Authorization header: '<client id> <JWT>' is expected" == error["info"]


@pytest.mark.ruling("W4")
def test_the_credential_is_checked_before_role_body_size_and_body(live: LiveServer):
    expired = live.client("viewer", exp=1)
    viewer = live.client("viewer", user="1", channel="777")

    answers = [
        expired.post("extension_state", content=b"x" * 70_000),
        viewer.post("extension_state", content=b"x" * 70_000),
        viewer.post("viewer_state", content=b"x" * 70_000),
        viewer.post("viewer_state", content=b"x" * 60_000),
    ]

    assert [401, 403, 413, 400] == [answer.status_code for answer in answers]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("vote", {"value": "3"}, "value"),
        ("vote", {}, "value"),
        ("vote", {"value": 1, "count": "2"}, "count"),
        ("rank", {"key": 5}, "key"),
        ("rank", {"answer": "x"}, "key"),
        ("vote_config", {"config": {"options": [1]}}, "config.options"),
        ("authtoken", {"user_ids": [[]]}, "user_ids"),
    ],
)
def test_an_invalid_body_is_400_naming_the_field(admin: Client, path: str, body: dict[str, Any], field: str):
    error = error_of(admin.post(path, json=body))

    assert "Invalid body" == error["reason"]
    assert field in error["info"]


@pytest.mark.ruling("W4")
def test_every_call_is_503_without_internals_while_storage_is_down():
    with live_server() as live:
        admin = live.client("admin", user="1", channel="777")
        admin.get("vote").raise_for_status()
        live.run(close_engine(live))

        answers = [
            admin.get("vote"),
            admin.post("vote", json={"value": 1}),
            admin.get("all_state"),
            admin.patch("channel_state", json={}),
            admin.post("accumulate", json={}),
            admin.get("accumulate"),
            admin.get("vote_logs"),
            admin.get("rank"),
        ]

    assert {(503, "1")} == {(answer.status_code, answer.headers["retry-after"]) for answer in answers}
    assert {("Service Unavailable", "storage is unavailable; try again")} == {
        (error_of(each)["reason"], error_of(each)["info"]) for each in answers
    }


def test_the_service_is_live_but_not_ready_while_storage_is_down():
    with live_server() as live, Client(base_url=live.url) as client:
        live.run(close_engine(live))

        alive, ready = client.get("/_emulator/live"), client.get("/_emulator/ready")

    assert (200, 503) == (alive.status_code, ready.status_code)
    assert "1" == ready.headers["retry-after"]
    error_of(ready)


def test_a_failing_relay_fails_a_broadcast_but_not_a_write(tmp_path: Path):
    with live_server(Settings(data=f"sqlite://{tmp_path}/data.db", has_peers=True)) as live:
        file = sqlite3.connect(tmp_path / "data.db", isolation_level=None)
        file.execute("CREATE TRIGGER full BEFORE INSERT ON messages BEGIN SELECT RAISE(ABORT, 'no room'); END")
        file.close()
        broadcaster = live.client("broadcaster", user="777", channel="777")

        written = broadcaster.post("channel_state", json={"round": 1}).status_code
        sent = broadcaster.post("broadcast?topic=news", json={"data": {"round": 1}}).status_code

        assert (200, {"round": 1}) == (written, broadcaster.get("channel_state").json())
        assert 503 == sent


async def close_engine(live: LiveServer) -> None:
    """Close the engine under the service."""
    await live.service.engine.__aexit__(None, None, None)
    await asyncio.sleep(0)
