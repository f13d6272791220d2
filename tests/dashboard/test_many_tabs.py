"""Many open pages in one browser: the extension under test still loads, and the pages in use follow the service."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from support.browser import serve_folder
from support.process import wait_until
from support.service import Client, LiveServer

pytestmark = pytest.mark.long

MOST_STREAMS = 3
PANEL = """<!doctype html><title>Panel</title>
<script src="{service}/_emulator/platform-helper.js"></script>
<script>fetch("{service}/v1/e/vote").then(() => {{ document.title = "loaded"; }})</script>"""
"""A page of an extension, which needs the service for its script and for a call."""
HIDE = "Object.defineProperty(document, 'hidden', {value: true, configurable: true})"


def held(stranger: Client) -> int:
    """Return the number of open event streams."""
    text = stranger.get("/_emulator/metrics").text
    return int(float(text.split("\nemulator_held_requests ")[1].split("\n")[0]))


def opened(tabs: BrowserContext, url: str) -> Page:
    page = tabs.new_page()
    page.goto(url)
    return page


def follows(page: Page) -> None:
    expect(page.locator("#reload")).to_be_hidden()


def test_with_eight_tabs_open_the_extension_under_test_loads_at_once(
    live: LiveServer, stranger: Client, browser: Browser, tmp_path: Path
):
    (tmp_path / "panel.html").write_text(PANEL.format(service=live.url))
    with browser.new_context() as tabs, serve_folder(tmp_path) as extension:
        for _ in range(8):
            page = opened(tabs, f"{live.url}/_emulator/ui/requests")
        follows(page)
        wait_until(lambda: held(stranger) == MOST_STREAMS)
        panel = opened(tabs, f"{extension}/panel.html")

        expect(panel).to_have_title("loaded")


def test_a_tab_follows_again_when_the_reader_turns_to_it(live: LiveServer, stranger: Client, browser: Browser):
    with browser.new_context() as tabs:
        pages = [opened(tabs, f"{live.url}/_emulator/ui/polls") for _ in range(MOST_STREAMS + 1)]
        follows(pages[-1])
        expect(pages[0].locator("#reload")).to_be_visible()
        live.client("viewer", user="1", channel="777").post("vote?id=late", json={"value": 1})
        pages[0].evaluate("dispatchEvent(new Event('focus'))")

        expect(pages[0].locator("main")).to_contain_text("late")
        expect(pages[1].locator("#reload")).to_be_visible()
        wait_until(lambda: held(stranger) == MOST_STREAMS)


def test_a_tab_that_opens_in_the_background_holds_no_stream(live: LiveServer, stranger: Client, browser: Browser):
    with browser.new_context() as tabs:
        tabs.add_init_script(HIDE)
        page = tabs.new_page()
        page.goto(f"{live.url}/_emulator/ui/polls", wait_until="networkidle")

        assert 0 == held(stranger)
