"""The API documentation page in Chromium, under its content security policy."""

from __future__ import annotations

import pytest

from support.browser import run_browser
from support.service import Client, LiveServer

UNDER_SCHEMA = [
    "",
    "/docs",
    "/openapi.json",
    "/viewer.js",
    "/swagger-ui-bundle.js",
    "/swagger-ui.css",
]


@pytest.mark.long
def test_the_page_shows_and_calls_every_operation_within_its_policy(running_live: LiveServer, stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    result = run_browser("browser_viewer.js", running_live.url, running_live.url)

    assert sum(len(item) for item in paths.values()) == result["operations"]
    assert "200" == result["status"].split()[0]
    assert {"consoleErrors": [], "errorResponses": [], "unexpectedOrigins": [], "preflights": []} == result["log"]


@pytest.mark.parametrize("path", UNDER_SCHEMA)
def test_the_policy_forbids_framing_and_other_origins(stranger: Client, path: str):
    headers = stranger.get(f"/schema{path}").raise_for_status().headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))

    assert ("'none'", "'self'", "'none'") == (
        policy["default-src"],
        policy["script-src"],
        policy["frame-ancestors"],
    )
    assert ("DENY", "nosniff", "no-referrer", "same-origin") == (
        headers["x-frame-options"],
        headers["x-content-type-options"],
        headers["referrer-policy"],
        headers["cross-origin-resource-policy"],
    )
