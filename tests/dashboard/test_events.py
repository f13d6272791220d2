"""The event stream of an open page."""

from __future__ import annotations

import zlib

import httpx
import pytest
from playwright.sync_api import expect

from emulator.dashboard.pages import screens
from emulator.dashboard.stream import GONE
from support.pages import chromium, fetched, following, main_of
from support.service import LiveServer


@pytest.fixture
def overview(live: LiveServer) -> str:
    return f"{live.url}/_emulator/ui/overview"


def test_a_change_sends_the_screen_again(live: LiveServer, overview: str):
    with following(overview) as stream:
        _, before = stream.read()
        live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
        _, after = stream.read()

    assert "Busiest poll" not in before
    assert "Busiest poll" in after


def test_a_stream_resumes_without_what_the_page_shows(live: LiveServer, overview: str):
    with following(overview) as stream:
        shown, _ = stream.read()
    with following(overview, shown) as stream:
        live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
        identifier, data = stream.read()

    assert shown != identifier
    assert "Busiest poll" in data


def test_the_stream_of_an_unknown_screen_gets_404(live: LiveServer):
    assert 404 == fetched(f"{live.url}/_emulator/ui/nothing/events").status_code


def test_a_compressed_stream_is_whole_when_its_namespace_ends(live: LiveServer):
    address = f"{live.url}/_ns/short/_emulator/ui/overview/events"
    with httpx.stream("GET", address, headers={"Accept-Encoding": "gzip"}, timeout=20) as stream:
        chunks, unpacking = stream.iter_raw(), zlib.decompressobj(wbits=31)
        unpacking.decompress(next(chunks))
        httpx.delete(f"{live.url}/_ns/short").raise_for_status()
        text = b"".join(map(unpacking.decompress, chunks))

    assert text.endswith(GONE)
    assert unpacking.eof


def test_a_stream_ends_with_its_namespace(live: LiveServer):
    with following(f"{live.url}/_ns/short/_emulator/ui/overview") as stream:
        stream.read()
        httpx.delete(f"{live.url}/_ns/short").raise_for_status()
        assert ("", "") == stream.read()  # the event `gone`, after which a page does not connect again
        with pytest.raises(EOFError):
            stream.read()


@pytest.mark.slow
@pytest.mark.long
def test_an_open_page_shows_a_vote_at_once(live: LiveServer):
    with chromium() as browser:
        page = browser.new_page()
        page.goto(live.url)
        page.wait_for_selector("#reload", state="hidden")
        live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
        expect(page.locator("main")).to_contain_text("Busiest poll: default")

        assert f"{live.url}/_emulator/" == page.url


@pytest.mark.parametrize("screen", [name for name in screens() if name not in ("overview", "clock", "namespaces")])
def test_a_screen_is_the_same_while_nothing_changes(live: LiveServer, screen: str):
    live.set(2_000_000_000_000)
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
    url = f"{live.url}/_emulator/ui/{screen}"

    assert main_of(url) == main_of(url)
