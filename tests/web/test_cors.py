"""CORS: open on the service API, closed on everything else (ruling W5)."""

from __future__ import annotations

import httpx
import pytest

from support.service import Client, LiveServer

PAGE = "https://extension.example"
OPEN = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "Authorization, Content-Type",
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
    "access-control-expose-headers": "X-Request-Id, Retry-After",
}


def cors(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize(
    "path", ["vote", "//vote", "authtoken", "config/channel", "no/such/path", "accumulate?id=a&b#c"]
)
@pytest.mark.ruling("W5")
def test_a_preflight_succeeds_for_every_path(stranger: Client, path: str):
    answer = stranger.options(
        f"/v1/e/{path}",
        headers={
            "Origin": PAGE,
            "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": "authorization",
        },
    )

    assert (200, b"{}", "application/json") == (answer.status_code, answer.content, answer.headers["content-type"])
    assert OPEN | {"access-control-max-age": "7200"} == cors(answer)


@pytest.mark.ruling("W5")
def test_any_origin_may_read_errors_raised_before_an_endpoint(live: LiveServer, stranger: Client, viewer):
    answers = [
        stranger.get("/v1/e/vote"),
        stranger.get("/v1/e/user_info"),
        stranger.get("/v1/nothing"),
        viewer().put("vote"),
        viewer().put("user_info"),
        viewer().post("vote", content=b" " * 70_000),
        viewer().post("viewer_state", content=b" " * 70_000),
        stranger.post("/v1/e/authtoken", content=b"{"),
    ]

    assert [401, 401, 404, 405, 405, 413, 413, 400] == [answer.status_code for answer in answers]
    assert [OPEN] * len(answers) == [cors(answer) for answer in answers]


@pytest.mark.ruling("W5")
def test_any_origin_may_read_a_streamed_response(admin: Client):
    assert [OPEN, OPEN] == [cors(admin.get(path)) for path in ("vote_logs", "accumulate")]


@pytest.mark.parametrize(
    "path",
    [
        "/_emulator/clock",
        "/_emulator/reset",
        "/_emulator/live",
        "/_emulator/ready",
        "/_emulator/metrics",
        "/_emulator/x",
        "/schema/openapi.json",
        "/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.ruling("W5")
def test_no_origin_may_read_anything_outside_the_api(stranger: Client, path: str, method: str):
    answer = stranger.request(method, path, headers={"Origin": PAGE, "Access-Control-Request-Method": "POST"})

    assert {} == cors(answer)


@pytest.mark.parametrize(
    "path", ["/_emulator/clock", "/_emulator/reset", "/_emulator/live", "/schema/openapi.json", "/"]
)
@pytest.mark.ruling("W3")
def test_a_preflight_outside_the_api_gets_405_with_a_body(stranger: Client, path: str):
    answer = stranger.options(path, headers={"Origin": PAGE, "Access-Control-Request-Method": "POST"})

    assert (405, "application/json") == (answer.status_code, answer.headers["content-type"])
    assert "Method Not Allowed" == answer.json()["reason"]
