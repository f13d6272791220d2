"""The report of a simulation: one file, which needs no script and no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from support.browser import SDK
from support.pages import chromium

pytestmark = pytest.mark.slow

AXE = SDK / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN_AXE = """async (tags) => {
  const { violations } = await window.axe.run(document, { runOnly: { type: 'tag', values: tags } });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
}"""
HOSTILE = "<script>document.title = 'run'</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def program(shell) -> Callable[..., int]:
    """Run the program in a process, as the browser holds the event loop of this one. Returns the exit code."""

    def run(*args: str) -> int:
        process = shell(*args)
        process.communicate(timeout=60)
        return int(process.returncode)

    return run


@pytest.fixture
def report(program, tmp_path: Path) -> Path:
    """The report of a crowd in which some viewers are refused."""
    path = tmp_path / "report.html"
    assert 0 == program("vote", "define", "lunch", "--prompt", "Which?")
    assert 7 == program("simulate", "crowd", "--viewers", "200", "--poll", "lunch", "--mix", "0:60,1:30,2:10",
                 "--rate", "400/s", "--late", "5%", "--expect", "failed==0", "--expect", "max<0.001ms",
                 "--report", str(path))  # fmt: skip
    return path


@pytest.fixture
def offline(browser: Browser, report: Path) -> Iterator[Page]:
    """The report in a browser without script and without network; it has `requests`, all that the page made."""
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    made: list[str] = []
    page.on("request", lambda request: made.append(request.url))
    page.goto(report.as_uri())
    assert [report.as_uri()] == made
    yield page
    context.close()


@pytest.mark.long
def test_a_report_shows_everything_without_script_and_network(offline: Page):
    shown = offline.locator("main").inner_text()

    assert "default-src 'none'" in offline.content()
    for text in ("Simulation of poll lunch", "Result: as planned", "190 voters", "10 times 400 poll is closed"):
        assert text in shown
    assert "max<0.001ms" in shown
    assert 3 == offline.locator("svg[role=img]").count()
    assert all(
        box and box["width"] > 300 for box in map(lambda each: each.bounding_box(), offline.locator("svg.chart").all())
    )
    assert offline.locator("polyline").count() >= 6
    assert 4 == offline.locator("rect.found").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_a_report_has_no_finding_of_axe(browser: Browser, report: Path, scheme: str):
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
    page.add_script_tag(path=AXE)

    assert [] == page.evaluate(RUN_AXE, RULES)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 28)") == background
    context.close()


@pytest.mark.long
def test_names_in_a_report_are_text(program, browser: Browser, tmp_path: Path):
    path = tmp_path / "report.html"
    mix = ("--mix", f"{HOSTILE}:1")
    assert 0 == program("simulate", "rank", "--viewers", "3", "--ranking", HOSTILE, *mix, "--report", str(path))
    page = browser.new_page()
    page.goto(path.as_uri())

    assert f"Simulation of ranking {HOSTILE}" == page.title()
    assert HOSTILE in page.locator("table").first.inner_text()
    page.close()


def test_a_report_that_cannot_be_written_is_an_error(extcli, tmp_path: Path):
    path = tmp_path / "absent" / "report.html"
    ran = extcli("simulate", "crowd", "--viewers", "2", "--mix", "0:1", "--report", str(path), exits=2)

    assert f"--report: cannot write {path}" in ran.stderr
    assert 0 == extcli("vote", "get", "-o", "json").json["stats"]["count"], "nothing was sent"


@pytest.mark.parametrize("kind", [("accumulate", "--viewers", "2"), ("socket", "--connections", "2")], ids=" ".join)
def test_a_run_without_choices_has_a_report(extcli, tmp_path: Path, kind: tuple[str, ...]):
    path = tmp_path / "report.html"
    extcli("simulate", *kind, "--rate", "100/s", "--report", str(path), exits=0)

    assert "Result: as planned" in path.read_text()
