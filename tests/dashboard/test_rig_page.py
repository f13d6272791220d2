"""The page of the rig as HTML: its policy, its warnings, and parameters of any kind."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

import pytest

from support.filled_service import HOSTILE
from support.pages import fetched, main_of
from support.service import LiveServer


def rig(service: LiveServer, **query: str) -> str:
    return f"{service.url}/_emulator/rig?{urlencode(query)}"


@contextmanager
def serving(
    headers: dict[str, str], status: int = 200, body: bytes = b"/_emulator/platform-helper.js /_emulator/sdk.js"
) -> Iterator[str]:
    """Serve one response to every request."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_OneAnswer, headers, status, body)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _OneAnswer(BaseHTTPRequestHandler):
    def __init__(self, headers: dict[str, str], status: int, body: bytes, *args: object) -> None:
        self.answer = headers, status, body
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        headers, status, body = self.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ({"X-Frame-Options": "DENY"}, "forbids frames by its header X-Frame-Options: DENY"),
        (
            {"Content-Security-Policy": "default-src *; frame-ancestors 'none'"},
            "forbids frames by its header Content-Security-Policy: frame-ancestors &#39;none&#39;",
        ),
    ],
)
def test_a_page_that_forbids_frames_is_named_with_its_header(live: LiveServer, header: dict[str, str], text: str):
    with serving(header) as url:
        shown = main_of(rig(live, url=url))

    assert text in shown
    assert f"or allow {live.url} there" in shown


@pytest.mark.parametrize("word", [word for word in HOSTILE if "<" in word or '"' in word])
@pytest.mark.parametrize(
    "name", ["url", "config", "live", "viewers", "client_id", "channel_id", "1.user_id", "1.theme"]
)
def test_hostile_parameters_are_texts(live: LiveServer, name: str, word: str):
    answer = fetched(rig(live, **{"url": "http://127.0.0.1:1/", name: word}))

    assert answer.status_code in (200, 400)
    assert word not in answer.text
    assert "\n" not in answer.headers["content-security-policy"]


def test_an_invalid_arrangement_keeps_what_was_filled_in(live: LiveServer):
    answer = fetched(rig(live, url="http://127.0.0.1:1/", viewers="9"))

    assert 400 == answer.status_code
    assert "viewers: must be 1 to 6" in answer.text
    assert 'value="http://127.0.0.1:1/"' in answer.text


def test_the_policy_names_the_one_origin_of_the_frames(live: LiveServer):
    with_frames = fetched(rig(live, url="http://localhost:8000/panel.html?a=1", config="/config.html"))
    policy = fetched(rig(live)).headers["content-security-policy"]

    assert f"{policy}; frame-src http://localhost:8000" == with_frames.headers["content-security-policy"]
    assert "default-src 'none'" in policy


def test_a_page_that_allows_frames_has_no_warning(live: LiveServer):
    with serving({"Content-Security-Policy": f"frame-ancestors {live.url}"}) as url:
        assert "warning" not in main_of(rig(live, url=url))


def test_a_page_that_uses_another_service_is_named(live: LiveServer):
    with serving({}, body=b"<script src='http://127.0.0.1:1/_emulator/platform-helper.js'>") as url:
        assert f"uses the service http://127.0.0.1:1, and this rig is of {live.url}." in main_of(rig(live, url=url))


def test_production_has_no_rig(production: LiveServer):
    assert 404 == fetched(rig(production, url="http://127.0.0.1:1/")).status_code
