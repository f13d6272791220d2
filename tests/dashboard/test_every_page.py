"""Every page of the dashboard in Chromium: with nothing and with something in the service, and with hostile names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from dashboard.conftest import in_use
from emulator.dashboard.pages import screens
from support.browser import SDK, serve_folder
from support.filled_service import HOSTILE, PLAIN, filled_service
from support.pages import all_pages
from support.service import CHANNEL

pytestmark = [pytest.mark.slow, pytest.mark.long]
CONTENTS = {"empty": (), "full": PLAIN}
AXE = SDK / "node_modules" / "axe-core" / "axe.min.js"
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
"""What axe checks: WCAG 2.2, levels A and AA."""
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
OPEN_DETAILS = "(all) => all.forEach((each) => { each.name = ''; each.open = true; })"
WITHOUT_COMMANDS = """(main) => {
  const commands = main.querySelectorAll('code[data-command], .timeline, .card .big');
  commands.forEach((each) => { each.style.display = 'none'; });
  const value = main.innerText;
  commands.forEach((each) => { each.style.display = ''; });
  return value;
}"""
"""Without the picture and the figures of the last minutes either, which move. In one step, so that no update comes
between."""
WIDE = {"width": 1280, "height": 900}
SAMPLES = 3
"""Pages of one kind, such as pages of single polls, that are opened to find names that run."""
SLOW_EFFECTS = 100
"""Milliseconds after the load for what a hostile name would start: images, timers, triggers of htmx."""
VARYING = re.compile(r"\d\d:\d\d:\d\d\.\d{3}|(\d+ \w+ )+(ago|behind)|\d+ ms|(?<=\t)(\d+ (min|s) ?)+(?=\t)")
"""Texts that differ between two loads of a page, although the clock is frozen: the machine's time. The last form is a
cell with an age."""


class Visit(NamedTuple):
    """What was found on one page."""

    axe: list[str]
    shown: str
    """The text of `<main>` with script."""
    read: str
    """The text of `<main>` without script."""


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


@contextmanager
def pages_of(words: tuple[str, ...], extension: str, *, alike: int = 1) -> Iterator[list[str]]:
    """Yield the addresses of all pages of a service, and of a rig with all kinds of frames."""
    with filled_service(*words) as live:
        rig = f"{live.url}/_emulator/rig?url={extension}/panel.html&config=panel.html&live=panel.html"
        yield all_pages(live.url, rig, alike=alike)


@pytest.fixture(scope="module", params=CONTENTS)
def visits(request: pytest.FixtureRequest, extension: str, running_browser: Browser) -> Visits:
    """Visit each page with and without script. The policy, which would not let axe in, has a test of its own."""
    found: Visits = {}
    with (
        pages_of(CONTENTS[request.param], extension) as pages,
        in_use(running_browser) as browser,
        opened(browser, viewport=WIDE, bypass_csp=True) as page,
        opened(browser, viewport=WIDE, java_script_enabled=False) as plain,
    ):
        page.add_init_script(path=AXE)
        for address in pages:
            texts = []
            for each in (page, plain):
                each.goto(address)
                texts.append(VARYING.sub("…", each.locator("main").evaluate(WITHOUT_COMMANDS)))
                each.locator("details").evaluate_all(OPEN_DETAILS)
            found[_name(address)] = Visit(page.evaluate(RUN_AXE, RULES), *texts)
    return found


def test_no_page_has_a_finding_of_axe(visits: Visits):
    assert {} == {name: visit.axe for name, visit in visits.items() if visit.axe}
    assert {f"/_emulator/ui/{name}" for name in screens() if name != "overview"} < visits.keys()


def test_every_page_shows_the_same_without_script(visits: Visits):
    assert {} == {name: (each.shown, each.read) for name, each in visits.items() if each.shown != each.read}
    assert [] == [name for name, visit in visits.items() if len(visit.read.split()) < 3]


def test_nothing_runs_breaks_the_policy_or_contacts_another_origin(extension: str, browser: Browser):
    found: dict[str, list[str]] = {}
    with pages_of(HOSTILE, extension, alike=SAMPLES) as pages, opened(browser) as page:
        problems: list[str] = []
        page.on("request", lambda request: problems.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        for address in pages:
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


def test_a_name_that_arrives_while_a_page_is_open_does_not_run(browser: Browser):
    with filled_service() as live, ExitStack() as stack:
        shown = {}
        for screen in ("rankings", "buffers", "stores", "requests", "polls"):
            page = stack.enter_context(opened(browser))
            page.goto(f"{live.url}/_emulator/ui/{screen}")
            page.locator("#reload").wait_for(state="hidden")
            shown[page] = page.locator("main").inner_html()
        viewer = live.client("viewer", user=HOSTILE[1], opaque=f"U{HOSTILE[1]}", channel=CHANNEL)
        for word in HOSTILE:
            viewer.post("rank", params={"id": word}, json={"key": word})
            viewer.post("accumulate", params={"id": word}, json={word: word})
            viewer.post("viewer_state", json={word: word})
            viewer.post("vote", json={"value": 1})
        for page, before in shown.items():
            page.wait_for_function("(before) => document.querySelector('main').innerHTML !== before", arg=before)
            page.wait_for_timeout(SLOW_EFFECTS)
            assert (None, []) == (page.evaluate("window.owned"), page.evaluate("window.problems"))
            assert 0 == page.locator("main :is(script, img, svg[onload], bdi b)").count()


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _name(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
