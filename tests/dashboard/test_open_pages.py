"""An open page in Chromium: it follows the service, and disturbs neither the reader nor the service."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from support.browser import serve_folder
from support.process import wait_until
from support.service import LiveServer
from support.waits import held

pytestmark = [pytest.mark.slow, pytest.mark.long]

MOST_STREAMS = 3
PANEL = """<!doctype html><title>Panel</title>
<script src="{service}/_emulator/platform-helper.js"></script>
<script>fetch("{service}/v1/e/vote").then(() => {{ document.title = "loaded"; }})</script>"""
"""A page of an extension, which needs the service for its script and for a call."""
HIDE = """Object.defineProperty(document, 'hidden', {value: %s, configurable: true});
document.dispatchEvent(new Event('visibilitychange'))"""


def opened(page: Page, url: str) -> None:
    """Open a page, and wait until it follows the service."""
    page.goto(url)
    page.wait_for_selector("#reload", state="hidden")


def vote(live: LiveServer, poll: str) -> None:
    live.client("viewer", user="1", channel="777").post("vote", params={"id": poll}, json={"value": 1})


def test_typed_text_focus_and_open_details_stay_when_the_page_changes(live: LiveServer, page: Page):
    # Typed text and focus stay when the page changes
    opened(page, f"{live.url}/_emulator/ui/requests")
    page.fill("#filter-search", "half a w")
    vote(live, "typed")
    expect(page.locator("main")).to_contain_text("/v1/e/vote?id=typed")

    assert "half a w" == page.input_value("#filter-search")
    assert "filter-search" == page.evaluate("document.activeElement.id")

    # Details that the reader has opened stay open
    httpx.post(f"{live.url}/_ns/maroon")
    opened(page, f"{live.url}/_emulator/ui/namespaces")
    page.click("text=Delete maroon")
    httpx.post(f"{live.url}/_ns/olive")
    expect(page.locator("main")).to_contain_text("olive")

    assert page.is_visible("#drop-maroon")


def test_a_hidden_page_closes_its_stream_and_catches_up(live: LiveServer, page: Page):
    opened(page, f"{live.url}/_emulator/")
    assert 1 == held(live)
    page.evaluate(HIDE % "true")
    wait_until(lambda: held(live) == 0)
    vote(live, "hidden")
    expect(page.locator("main")).not_to_contain_text("Busiest poll")
    page.evaluate(HIDE % "false")

    expect(page.locator("main")).to_contain_text("Busiest poll: hidden")


def test_without_a_stream_there_is_a_link_to_reload_and_no_dropped_namespace_returns(live: LiveServer, page: Page):
    # Without a stream there is a link to reload
    page.route("**/events?*", lambda route: route.abort())
    page.goto(f"{live.url}/_emulator/ui/requests?status=403")

    link = page.locator("#reload")
    expect(link).to_be_visible()
    assert "/_emulator/ui/requests?status=403" == link.get_attribute("href")
    page.unroute_all()

    # An open page does not create its dropped namespace again
    with page.expect_response("**/icon.svg?*"):  # the browser asks for it last, and would create the namespace again
        opened(page, f"{live.url}/_ns/brief/_emulator/")
    httpx.delete(f"{live.url}/_ns/brief").raise_for_status()
    page.wait_for_selector("#reload", state="visible")

    assert "brief" not in httpx.get(f"{live.url}/_ns").json()["namespaces"]


# Many open pages in one browser


def tab_at(tabs: BrowserContext, url: str) -> Page:
    page = tabs.new_page()
    page.goto(url)
    return page


def follows(page: Page) -> None:
    expect(page.locator("#reload")).to_be_hidden()


def test_with_eight_tabs_open_the_extension_under_test_loads_at_once(
    live: LiveServer, browser: Browser, tmp_path: Path
):
    (tmp_path / "panel.html").write_text(PANEL.format(service=live.url))
    with browser.new_context() as tabs, serve_folder(tmp_path) as extension:
        for _ in range(8):
            page = tab_at(tabs, f"{live.url}/_emulator/ui/requests")
        follows(page)
        wait_until(lambda: held(live) == MOST_STREAMS)
        panel = tab_at(tabs, f"{extension}/panel.html")

        expect(panel).to_have_title("loaded")


def test_a_tab_follows_again_when_the_reader_turns_to_it(live: LiveServer, browser: Browser):
    with browser.new_context() as tabs:
        pages = [tab_at(tabs, f"{live.url}/_emulator/ui/polls") for _ in range(MOST_STREAMS + 1)]
        follows(pages[-1])
        expect(pages[0].locator("#reload")).to_be_visible()
        live.client("viewer", user="1", channel="777").post("vote?id=late", json={"value": 1})
        pages[0].evaluate("dispatchEvent(new Event('focus'))")

        expect(pages[0].locator("main")).to_contain_text("late")
        expect(pages[1].locator("#reload")).to_be_visible()
        wait_until(lambda: held(live) == MOST_STREAMS)
