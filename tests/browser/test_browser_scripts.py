"""The two scripts that pages load from the service: to whom and as what they are given. Browsers run them elsewhere."""

from __future__ import annotations

import pytest

from support.service import Client, LiveServer

SCRIPTS = ("/_emulator/sdk.js", "/_emulator/platform-helper.js")
EACH = pytest.mark.parametrize("path", SCRIPTS)


@EACH
def test_a_page_of_any_origin_may_load_a_script_under_any_name_of_the_service(stranger: Client, path: str):
    answer = stranger.get(path, headers={"Origin": "https://page.example", "Host": "emulator.ci:8282"})

    assert (200, "text/javascript; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    assert ("nosniff", "*") == (
        answer.headers["x-content-type-options"],
        answer.headers["access-control-allow-origin"],
    )
    assert answer.text.isascii()


@EACH
def test_a_namespace_has_the_scripts_too(stranger: Client, path: str):
    assert stranger.get(path).text == stranger.get(f"/_ns/tests{path}").text


@EACH
def test_production_has_no_such_script(production: LiveServer, path: str):
    with Client(base_url=production.url) as client:
        assert 404 == client.get(path).status_code
