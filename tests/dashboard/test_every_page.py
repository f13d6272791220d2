"""Every page of the dashboard in Chromium: with nothing, with something and with hostile names in the service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from emulator.dashboard.pages import screens
from support.browser import SDK, serve_folder
from support.pages import all_pages
from support.service import LiveServer

pytestmark = pytest.mark.slow
AXE = SDK / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN_AXE = """async (tags) => {
  const { violations } = await window.axe.run(document, { iframes: false, runOnly: { type: 'tag', values: tags } });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
}"""
WATCH = """
window.problems = [];
document.addEventListener('securitypolicyviolation', (event) => {
  window.problems.push(`violation of ${event.violatedDirective} by ${event.blockedURI} ${event.sample}`);
});
"""
SAMPLES = 5
"""Pages of the same kind, such as the pages of polls, that are opened for hostile names."""
TIME = re.compile(r"\d\d:\d\d:\d\d\.\d{3}|(\d+ \w+ )+behind")
"""The time of the machine, and how far it is from the frozen clock: both differ between two loads of a page."""
SLOW_EFFECTS = 200
"""Milliseconds after the load for what a hostile name would start: images, timers, triggers of htmx."""


@contextmanager
def pages(browser: Browser, **options: Any) -> Iterator[Page]:
    """Open a page whose errors, dialogs, foreign requests and violations of its policy are in `problems_of`."""
    context = browser.new_context(**options)
    context.add_init_script(WATCH)
    page = context.new_page()
    try:
        yield page
    finally:
        context.close()


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The origin of a page for the rig."""
    folder = tmp_path_factory.mktemp("extension")
    (folder / "panel.html").write_text(
        '<!doctype html><html lang="en"><title>Panel</title><link rel="icon" href="data:,">'
    )
    with serve_folder(folder) as url:
        yield url


def addresses(live: LiveServer, extension: str, *, alike: int = 1) -> list[str]:
    """Return the addresses of all pages of a service, and of a rig with all kinds of frames."""
    rig = f"{live.url}/_emulator/rig?url={extension}/panel.html&config=panel.html&live=panel.html"
    return all_pages(live.url, rig, alike=alike)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_finding_of_axe(filled: LiveServer, extension: str, browser: Browser, scheme: Any):
    """The rules are those of WCAG 2.2, levels A and AA."""
    found = {}
    with pages(browser, color_scheme=scheme, bypass_csp=True) as page:
        for address in addresses(filled, extension):
            page.goto(address)
            page.add_script_tag(path=AXE)
            found[_name(address)] = page.evaluate(RUN_AXE, RULES)

    assert {} == {name: findings for name, findings in found.items() if findings}
    assert {f"/_emulator/ui/{name}" for name in screens() if name != "overview"} < found.keys()


def test_no_page_violates_its_policy_or_contacts_another_origin(filled: LiveServer, extension: str, browser: Browser):
    found: dict[str, list[str]] = {}
    with pages(browser) as page:
        problems: list[str] = []
        page.on(
            "request",
            lambda request: problems.append(request.url) if _is_foreign(request.url, filled.url, extension) else None,
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        for address in addresses(filled, extension, alike=SAMPLES):
            page.goto(address)
            page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
            page.wait_for_timeout(SLOW_EFFECTS)
            found[_name(address)] = [*problems, *page.evaluate("window.problems")]
            problems.clear()
            assert page.evaluate("window.owned === undefined"), f"a name runs on {_name(address)}"
            assert 1 == page.locator("h1").count()
            assert 0 == page.locator("main script, main img, [hx-on\\:click]").count()

    assert {} == {name: each for name, each in found.items() if each}


def test_every_page_shows_the_same_without_script(filled: LiveServer, extension: str, browser: Browser):
    with pages(browser) as page, pages(browser, java_script_enabled=False) as plain:
        for address in addresses(filled, extension):
            page.goto(address)
            plain.goto(address)
            shown, read = (TIME.sub("now", each.locator("main").inner_text()) for each in (page, plain))

            assert shown == read, _name(address)
            assert len(read.split()) > 2, _name(address)


@pytest.mark.parametrize("script", [True, False])
def test_no_page_scrolls_sideways_at_360_pixels(filled: LiveServer, extension: str, browser: Browser, script: bool):
    found = {}
    with pages(browser, viewport={"width": 360, "height": 740}, java_script_enabled=script) as page:
        for address in addresses(filled, extension):
            page.goto(address)
            page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
            found[_name(address)] = page.evaluate("document.scrollingElement.scrollWidth")

    assert {} == {name: width for name, width in found.items() if width > 360}


def _name(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _is_foreign(url: str, *origins: str) -> bool:
    return not url.startswith((*origins, "data:"))
