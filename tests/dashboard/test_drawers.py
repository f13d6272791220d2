"""Forms stay out of the way of the data: in a drawer below, in the row, next to the data, or separate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from emulator.dashboard.pages import screens
from support.filled_service import PLAIN, filled_service
from support.service import CHANNEL, CLIENT_ID, LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.long]
OF_LUNCH = f"id=lunch&client_id={CLIENT_ID}&channel_id={CHANNEL}"
SINGLE = [f"{screen}?{OF_LUNCH}" for screen in ("polls", "rankings", "buffers")]
PAGES = [*(name for name in screens() if name != "overview"), *SINGLE]
IN_THE_WAY = """(main) => [...main.querySelectorAll('form.action')]
  .filter((form) => form.checkVisibility() && form.querySelector('input:not([type=hidden]), textarea, select'))
  .filter((form) => !form.closest('.card, .drawer, td'))
  .map((form) => form.getAttribute("id"))"""
"""The visible forms with fields that are not next to the data."""
TOO_CLOSE = (
    "(main) => [...main.querySelectorAll('.asks')].filter((each) => !each.closest('td, .apart')).map((each) => each.id)"
)
"""The forms that destroy something and do not stand apart."""
BEFORE_THE_DATA = """(main) => {
  const data = main.querySelector('table, dl');
  const isLater = (each) => data && data.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING;
  return [...main.querySelectorAll('.drawers, .apart')].filter(isLater).map((each) => each.className);
}"""


@pytest.fixture(scope="module")
def full() -> Iterator[LiveServer]:
    with filled_service(*PLAIN) as live:
        yield live


def opened(page: Page, full: LiveServer, path: str, height: int = 900) -> Page:
    page.set_viewport_size({"width": 1280, "height": height})
    page.goto(f"{full.url}/_emulator/ui/{path}")
    return page


@pytest.mark.parametrize("path", PAGES)
def test_no_form_stands_between_the_reader_and_the_data(page: Page, full: LiveServer, path: str):
    main = opened(page, full, path).locator("main")

    assert [] == main.evaluate(IN_THE_WAY)
    assert [] == main.evaluate(TOO_CLOSE)
    assert [] == main.evaluate(BEFORE_THE_DATA)


def test_a_drawer_stays_in_sight_of_a_long_list_and_opens_there(page: Page, full: LiveServer):
    for number in range(30):
        full.client("viewer", channel=CHANNEL).post(f"vote?id=long-{number}", json={"value": 1}).raise_for_status()
    opened(page, full, "polls")
    summary = page.get_by_text("Define a poll")
    expect(summary).to_be_in_viewport(ratio=1)
    summary.click()

    expect(page.get_by_role("button", name="Define")).to_be_in_viewport()


def test_a_message_does_not_cover_a_drawer(page: Page, full: LiveServer):
    opened(page, full, "pins", height=500)
    page.get_by_text("Request a PIN").first.click()
    page.get_by_role("button", name="Request a PIN").click()
    expect(page.locator("#result")).to_contain_text("The PIN to type into the game:")
    drawers, result = page.locator(".drawers").bounding_box(), page.locator("#result").bounding_box()

    assert drawers is not None
    assert result is not None
    assert drawers["y"] + drawers["height"] <= result["y"] + 1


@pytest.mark.parametrize(("screen", "most"), [("requests", 8), ("polls", 6)])
def test_the_first_row_is_a_few_keys_away_from_the_content(page: Page, full: LiveServer, screen: str, most: int):
    opened(page, full, screen).locator("#reload").wait_for(state="hidden")
    page.locator("main").focus()
    row = page.locator("main tbody a").first
    for _ in range(most):
        page.keyboard.press("Tab")
        if row.evaluate("(each) => each === document.activeElement"):
            return
    raise AssertionError(f"{most} tabs do not reach the first row of {screen}")
