"""Every page of the dashboard in Chromium: with nothing, with something and with hostile names in the service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from emulator.dashboard.pages import screens
from support.browser import SDK, serve_folder
from support.filled_service import HOSTILE, PLAIN, filled_service
from support.pages import all_pages
from support.service import CHANNEL

pytestmark = [pytest.mark.slow, pytest.mark.long]
CONTENTS = {"empty": (), "full": PLAIN, "hostile": HOSTILE}
AXE = SDK / "node_modules" / "axe-core" / "axe.min.js"
RULES = {
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
"""What axe checks by color scheme: WCAG 2.2, levels A and AA, and then what depends on colors."""
RUN_AXE = """async (rules) => {
  const { violations } = await window.axe.run(document, { iframes: false, runOnly: rules });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
}"""
WATCH = """
window.problems = [];
document.addEventListener('securitypolicyviolation', (event) => {
  window.problems.push(`violation of ${event.violatedDirective} by ${event.blockedURI} ${event.sample}`);
});
"""
OPEN_DETAILS = "(all) => all.forEach((each) => { each.open = true; })"
WITHOUT_COMMANDS = """(main, found) => {
  const commands = main.querySelectorAll('code[data-command]');
  commands.forEach((each) => { each.style.display = 'none'; });
  const value = found === 'text' ? main.innerText : document.scrollingElement.scrollWidth;
  commands.forEach((each) => { each.style.display = ''; });
  return value;
}"""
"""In one step, so that an update of the page cannot come between."""
NARROW, WIDE = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
SAMPLES = 3
"""Pages of one kind, such as pages of single polls, that are opened to find names that run."""
SLOW_EFFECTS = 100
"""Milliseconds after the load for what a hostile name would start: images, timers, triggers of htmx."""
VARYING = re.compile(r"\d\d:\d\d:\d\d\.\d{3}|(\d+ \w+ )+(ago|behind)|\d+ ms|(?<=\t)(\d+ (min|s) ?)+(?=\t)")
"""Texts that differ between two loads of a page, although the clock is frozen: the machine's time. The last form is a
cell with an age."""


@dataclass
class Visit:
    """What was found on one page."""

    axe: dict[str, list[str]] = field(default_factory=dict)
    """The findings by color scheme."""
    shown: str = ""
    """The text of `<main>` with script."""
    read: str = ""
    """The text of `<main>` without script."""
    widths: list[int] = field(default_factory=list)
    """The width of the content in a window of 360 pixels, with and without script."""


Visits = dict[str, Visit]


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[Page]:
    context = browser.new_context(**options)
    context.add_init_script(WATCH)
    try:
        yield context.new_page()
    finally:
        context.close()


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The origin of a page for the rig."""
    folder = tmp_path_factory.mktemp("extension")
    page = '<!doctype html><html lang="en"><title>Panel</title><link rel="icon" href="data:,">'
    (folder / "panel.html").write_text(page)
    with serve_folder(folder) as url:
        yield url


@pytest.fixture(
    scope="module", params=["hostile", *(pytest.param(each, marks=pytest.mark.long) for each in ("empty", "full"))]
)
def pages(request: pytest.FixtureRequest, extension: str) -> Iterator[Callable[[int], list[str]]]:
    """Returns the addresses of all pages of a service, and of a rig with all kinds of frames."""
    with filled_service(*CONTENTS[request.param]) as live:
        rig = f"{live.url}/_emulator/rig?url={extension}/panel.html&config=panel.html&live=panel.html"
        yield lambda alike: all_pages(live.url, rig, alike=alike)


@pytest.fixture(scope="module")
def visits(pages: Callable[[int], list[str]], browser: Browser) -> Visits:
    """Visit each page with and without script. The policy, which would not let axe in, has a test of its own."""
    found: Visits = {}
    with (
        opened(browser, viewport=WIDE, bypass_csp=True) as page,
        opened(browser, viewport=WIDE, java_script_enabled=False) as plain,
    ):
        page.add_init_script(path=AXE)
        for address in pages(1):
            visit = found[_name(address)] = Visit()
            for each in (page, plain):
                each.goto(address)
            visit.shown, visit.read = (VARYING.sub("…", _without_commands(each, "text")) for each in (page, plain))
            for each in (page, plain):
                each.locator("details").evaluate_all(OPEN_DETAILS)
            for scheme, rules in RULES.items():
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                visit.axe[scheme] = page.evaluate(RUN_AXE, rules)
            for each in (page, plain):
                each.set_viewport_size(NARROW)  # type: ignore[arg-type]
                visit.widths.append(_without_commands(each, "width"))
                each.set_viewport_size(WIDE)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("scheme", RULES)
def test_no_page_has_a_finding_of_axe(visits: Visits, scheme: str):
    assert {} == {name: visit.axe[scheme] for name, visit in visits.items() if visit.axe[scheme]}
    assert {f"/_emulator/ui/{name}" for name in screens() if name != "overview"} < visits.keys()


def test_every_page_shows_the_same_without_script(visits: Visits):
    assert {} == {name: (each.shown, each.read) for name, each in visits.items() if each.shown != each.read}
    assert [] == [name for name, visit in visits.items() if len(visit.read.split()) < 3]


def test_no_page_scrolls_sideways_at_360_pixels(visits: Visits):
    assert {} == {name: visit.widths for name, visit in visits.items() if max(visit.widths) > 360}


def test_nothing_runs_breaks_the_policy_or_contacts_another_origin(
    pages: Callable[[int], list[str]], extension: str, browser: Browser
):
    found: dict[str, list[str]] = {}
    with opened(browser) as page:
        problems: list[str] = []
        page.on("request", lambda request: problems.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        for address in pages(SAMPLES):
            page.goto(address)
            page.locator("details").evaluate_all(OPEN_DETAILS)
            page.wait_for_timeout(SLOW_EFFECTS)
            own = ("data:", f"{extension}/", f"{_origin(address)}/_emulator/")
            found[_name(address)] = [
                *(each for each in problems if not each.startswith(own)),
                *page.evaluate("window.problems"),
                *page.evaluate("window.owned ? ['a name runs'] : []"),
                *page.locator("main :is(script, img, style, [onload], [onerror], b[hx-get])").all_inner_texts(),
            ]
            problems.clear()
            assert 1 == page.locator("h1").count()

    assert {} == {name: each for name, each in found.items() if each}


@pytest.mark.parametrize("screen", ["rankings", "buffers", "stores", "requests", "polls"])
def test_a_name_that_arrives_while_a_page_is_open_does_not_run(browser: Browser, screen: str):
    with filled_service() as live, opened(browser) as page:
        page.goto(f"{live.url}/_emulator/ui/{screen}")
        page.locator("#reload").wait_for(state="hidden")
        before = page.locator("main").inner_html()
        viewer = live.client("viewer", user=HOSTILE[1], opaque=f"U{HOSTILE[1]}", channel=CHANNEL)
        for word in HOSTILE:
            viewer.post("rank", params={"id": word}, json={"key": word})
            viewer.post("accumulate", params={"id": word}, json={word: word})
            viewer.post("viewer_state", json={word: word})
            viewer.post("vote", json={"value": 1})
        page.wait_for_function("(before) => document.querySelector('main').innerHTML !== before", arg=before)
        page.wait_for_timeout(SLOW_EFFECTS)

        assert (None, []) == (page.evaluate("window.owned"), page.evaluate("window.problems"))
        assert 0 == page.locator("main :is(script, img, svg[onload], b)").count()


def _without_commands(page: Page, found: str) -> Any:
    """Return the `text` of `<main>` or the `width` of the page, apart from commands that follow a form."""
    return page.locator("main").evaluate(WITHOUT_COMMANDS, found)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _name(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
