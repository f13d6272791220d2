"""The report of a simulation: one file, which needs no script and no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

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


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.mark.long
def test_a_report_shows_everything_as_text_without_script_and_network(shell, browser: Browser, tmp_path: Path):
    """The commands are processes, as the browser occupies the event loop of this one."""
    path = tmp_path / "report.html"
    crowd = ("simulate", "crowd", "--viewers", "200", "--poll", "lunch", "--mix", "0:60,1:30,2:10", "--rate", "400/s")
    expected = ("--late", "5%", "--expect", "failed==0", "--expect", "max<0.001ms")
    with shell("vote", "define", "lunch", "--prompt", "Which?") as process:
        assert 0 == process.wait(60)
    with shell(*crowd, *expected, "--report", str(path)) as process:
        assert 7 == process.wait(60)
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    made: list[str] = []
    page.on("request", lambda request: made.append(request.url))
    page.goto(path.as_uri())
    shown = page.locator("main").inner_text()

    assert [path.as_uri()] == made
    assert "default-src 'none'" in page.content()
    for text in ("Simulation of poll lunch", "Result: as planned", "190 voters", "10 times 400 poll is closed"):
        assert text in shown
    assert "max<0.001ms" in shown
    assert 3 == page.locator("svg[role=img]").count()
    boxes = [each.bounding_box() for each in page.locator("svg.chart").all()]
    assert all(box and box["width"] > 300 for box in boxes)
    assert page.locator("polyline").count() >= 6
    assert 4 == page.locator("rect.found").count()
    context.close()


@pytest.mark.long
@pytest.mark.parametrize(("scheme", "background"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 28)")])
def test_a_report_with_a_hostile_name_has_no_finding_of_axe(
    shell, browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"], background: str
):
    path = tmp_path / "report.html"
    mix = ("--mix", f"{HOSTILE}:1")
    with shell("simulate", "rank", "--viewers", "3", "--ranking", HOSTILE, *mix, "--report", str(path)) as process:
        assert 0 == process.wait(60)
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    page.goto(path.as_uri())

    assert f"Simulation of ranking {HOSTILE}" == page.title()
    assert HOSTILE in page.locator("table").first.inner_text()
    page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
    page.add_script_tag(path=AXE)
    assert [] == page.evaluate(RUN_AXE, RULES)
    assert background == page.evaluate("getComputedStyle(document.body).backgroundColor")
    context.close()


def test_a_report_that_cannot_be_written_is_an_error(extcli, tmp_path: Path):
    path = tmp_path / "absent" / "report.html"
    ran = extcli("simulate", "crowd", "--viewers", "2", "--mix", "0:1", "--report", str(path), exits=2)

    assert f"--report: cannot write {path}" in ran.stderr
    assert 0 == extcli("vote", "get", "-o", "json").json["stats"]["count"], "nothing was sent"


def test_a_run_without_choices_has_a_report(extcli, tmp_path: Path):
    path = tmp_path / "report.html"
    for kind in (("accumulate", "--viewers", "2"), ("socket", "--connections", "2")):
        extcli("simulate", *kind, "--rate", "100/s", "--report", str(path), exits=0)
        assert "Result: as planned" in path.read_text()
