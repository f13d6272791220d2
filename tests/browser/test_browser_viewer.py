"""The API documentation page in Chromium, under its content security policy."""

from __future__ import annotations

import pytest

from support.browser import run_browser
from support.service import Client, LiveServer


@pytest.mark.long
def test_the_page_shows_and_calls_every_operation_within_its_policy(running_live: LiveServer, stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    result = run_browser("browser_viewer.js", running_live.url, running_live.url)

    assert sum(len(item) for item in paths.values()) == result["operations"]
    assert "200" == result["status"].split()[0]
    assert {"consoleErrors": [], "errorResponses": [], "unexpectedOrigins": [], "preflights": []} == result["log"]
