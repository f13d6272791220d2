"""CORS: open on the service API, closed on everything else (rulings W3, W5)."""

from __future__ import annotations

import httpx

from support.service import Client

PAGE = "https://extension.example"
OPEN = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "Authorization, Content-Type",
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
    "access-control-expose-headers": "X-Request-Id, Retry-After",
}


def cors(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def test_any_origin_may_read_errors_and_streamed_responses(stranger: Client, viewer, admin: Client):
    # Any origin may read errors raised before an endpoint
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

    # Any origin may read a streamed response
    assert [OPEN, OPEN] == [cors(admin.get(path)) for path in ("vote_logs", "accumulate")]


def test_no_origin_may_read_or_load_anything_outside_the_api(stranger: Client):
    # No origin may read anything outside the API
    for path in [
        "/_emulator/clock",
        "/_emulator/reset",
        "/_emulator/live",
        "/_emulator/ready",
        "/_emulator/metrics",
        "/_emulator/x",
        "/schema/openapi.json",
        "/",
    ]:
        for method in ["GET", "POST", "OPTIONS"]:
            answer = stranger.request(method, path, headers={"Origin": PAGE, "Access-Control-Request-Method": "POST"})

            assert {} == cors(answer), path

    # No page of another site may call the control API in the private network
    for path in ["/_emulator/clock", "/_emulator/ready", "/_ns", "/", "/_emulator/ui/static/rig.js"]:
        answer = stranger.options(
            path, headers={"Origin": PAGE, "Access-Control-Request-Method": "GET", PRIVATE: "true"}
        )

        assert (405, {}) == (answer.status_code, cors(answer)), path

    # Isolated pages may load nothing else
    for path in ["/_emulator/clock", "/_emulator/", "/schema", "/_emulator/ready"]:
        assert "cross-origin" != stranger.get(path).headers.get("cross-origin-resource-policy"), path


SCRIPTS = ["/_emulator/sdk.js", "/_emulator/platform-helper.js"]
PRIVATE = "Access-Control-Request-Private-Network"


def test_pages_of_public_sites_may_call_the_private_network_if_they_ask(stranger: Client):
    # Pages of public sites may call the private network
    for path in [
        "/v1/e/vote",
        "/_ns/other/v1/e/vote",
        "/_ns/unopened/v1/e/vote",
        *SCRIPTS,
        f"/_ns/unopened{SCRIPTS[0]}",
    ]:
        asked = {"Origin": PAGE, "Access-Control-Request-Method": "GET"}

        plain, private = (stranger.options(path, headers={**asked, **more}) for more in ({}, {PRIVATE: "true"}))

        assert [200, 200] == [plain.status_code, private.status_code]
        assert OPEN | {"access-control-max-age": "7200"} == cors(plain)
        assert cors(plain) | {"access-control-allow-private-network": "true"} == cors(private)

    # The private network is allowed to those who ask
    for value in ["false", "", "1"]:
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
