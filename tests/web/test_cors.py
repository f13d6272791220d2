"""CORS: open on the service API, closed on everything else (rulings W3, W5)."""

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
def test_no_origin_may_read_anything_outside_the_api(stranger: Client, path: str, method: str):
    answer = stranger.request(method, path, headers={"Origin": PAGE, "Access-Control-Request-Method": "POST"})

    assert {} == cors(answer)


SCRIPTS = ["/_emulator/sdk.js", "/_emulator/platform-helper.js"]
PRIVATE = "Access-Control-Request-Private-Network"


@pytest.mark.parametrize(
    "path", ["/v1/e/vote", "/_ns/other/v1/e/vote", "/_ns/unopened/v1/e/vote", *SCRIPTS, f"/_ns/unopened{SCRIPTS[0]}"]
)
def test_pages_of_public_sites_may_call_the_private_network(stranger: Client, path: str):
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "GET"}

    plain, private = (stranger.options(path, headers={**asked, **more}) for more in ({}, {PRIVATE: "true"}))

    assert [200, 200] == [plain.status_code, private.status_code]
    assert OPEN | {"access-control-max-age": "7200"} == cors(plain)
    assert cors(plain) | {"access-control-allow-private-network": "true"} == cors(private)


@pytest.mark.parametrize("path", ["/_emulator/clock", "/_emulator/ready", "/_ns", "/", "/_emulator/ui/static/rig.js"])
def test_no_page_of_another_site_may_call_the_control_api_in_the_private_network(stranger: Client, path: str):
    answer = stranger.options(path, headers={"Origin": PAGE, "Access-Control-Request-Method": "GET", PRIVATE: "true"})

    assert (405, {}) == (answer.status_code, cors(answer))


@pytest.mark.parametrize("value", ["false", "", "1"])
def test_the_private_network_is_allowed_to_those_who_ask(stranger: Client, value: str):
    answer = stranger.options("/v1/e/vote", headers={"Origin": PAGE, PRIVATE: value})

    assert "access-control-allow-private-network" not in answer.headers


def test_isolated_pages_may_load_scripts_and_responses(stranger: Client, viewer, admin: Client):
    answers = [
        *(stranger.get(path) for path in SCRIPTS),
        stranger.get("/v1/e/nothing"),
        stranger.get("/v1/e/vote"),
        stranger.options("/v1/e/vote"),
        viewer().get("vote"),
        viewer().get("user_info"),
        admin.get("vote_logs"),
    ]

    assert {"cross-origin"} == {answer.headers.get("cross-origin-resource-policy") for answer in answers}


@pytest.mark.parametrize("path", ["/_emulator/clock", "/_emulator/", "/schema", "/_emulator/ready"])
def test_isolated_pages_may_load_nothing_else(stranger: Client, path: str):
    assert "cross-origin" != stranger.get(path).headers.get("cross-origin-resource-policy")
