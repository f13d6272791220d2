"""The page that shows the API, in Chromium, under the policy that browsers are told."""

from __future__ import annotations

import pytest

from support.browser import run_browser
from support.service import Client, LiveServer

UNDER_SCHEMA = [
    "",
    "/docs",
    "/openapi.json",
    "/viewer.js",
    "/swagger_bundle.js",
    "/swagger_preset.js",
    "/swagger_style.css",
]


def test_the_viewer_shows_every_operation_and_calls_them_and_breaks_no_policy(
    running_live: LiveServer, stranger: Client
):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    seen = run_browser("browser_viewer.js", running_live.url, running_live.url)

    assert sum(len(item) for item in paths.values()) == seen["operations"]
    assert "200" == seen["status"].split()[0]
    assert {"complaints": [], "refusals": [], "strangers": [], "preflights": []} == seen["record"]


@pytest.mark.parametrize("path", UNDER_SCHEMA)
def test_no_page_may_frame_it_and_it_may_load_nothing_from_elsewhere(stranger: Client, path: str):
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
