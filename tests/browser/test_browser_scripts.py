"""The headers of the two scripts for pages. `test_browser_pages.py` and `test_browser_frames.py` run them."""

from __future__ import annotations

import pytest

from support.service import Client, LiveServer

SCRIPTS = ("/_emulator/sdk.js", "/_emulator/platform-helper.js")
EACH_SCRIPT = pytest.mark.parametrize("path", SCRIPTS)


@EACH_SCRIPT
def test_pages_of_any_origin_may_load_the_scripts_under_any_host(stranger: Client, path: str):
    answer = stranger.get(path, headers={"Origin": "https://page.example", "Host": "emulator.ci:8282"})

    assert (200, "text/javascript; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    assert ("nosniff", "*") == (
        answer.headers["x-content-type-options"],
        answer.headers["access-control-allow-origin"],
    )
    assert answer.text.isascii()


@EACH_SCRIPT
def test_a_namespace_serves_the_scripts(stranger: Client, path: str):
    assert stranger.get(path).text == stranger.get(f"/_ns/tests{path}").text


@EACH_SCRIPT
def test_production_does_not_serve_the_scripts(production: LiveServer, path: str):
    with Client(base_url=production.url) as client:
        assert 404 == client.get(path).status_code
