"""Five tasks in the dashboard by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.filled_service import PLAIN, filled_service
from support.service import CHANNEL, CLIENT_ID, LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.long]
MOST_TABS = 150
WITHOUT_OUTLINE = """() => {
  const focused = document.activeElement;
  const isElsewhere = focused === document.body || focused.tagName === 'IFRAME';
  return isElsewhere || getComputedStyle(focused).outlineStyle !== 'none' ? '' : focused.outerHTML;
}"""
"""Returns the focused element if it has no outline."""


@pytest.fixture
def full() -> Iterator[LiveServer]:
    with filled_service(*PLAIN) as live:
        yield live


@pytest.fixture
def page(browser: Browser, full: LiveServer) -> Iterator[Page]:
    """The overview, with the focus at its beginning."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{full.url}/_emulator/")
    yield page
    context.close()


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus, which must be visible at each step."""
    expect(target).to_be_visible()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        assert "" == page.evaluate(WITHOUT_OUTLINE), "the focus cannot be seen"
        if target.evaluate("(each) => each === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {target}")


def go_to(page: Page, screen: str) -> None:
    """Follow a link of the navigation."""
    tab_to(page, page.get_by_role("navigation").get_by_role("link", name=screen, exact=True))
    page.keyboard.press("Enter")
    page.wait_for_load_state()


def test_the_content_is_one_key_away_from_the_top(page: Page):
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()


def test_a_vote_is_cast(page: Page, full: LiveServer):
    go_to(page, "Polls")
    tab_to(page, page.locator(f"main a[href*='id=lunch&client_id={CLIENT_ID}']"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("lunch")
    form = page.locator("form#cast")
    tab_to(page, form.get_by_label("Value"))
    page.keyboard.type("7")
    tab_to(page, form.get_by_label("User id", exact=True))
    page.keyboard.type("42")
    page.keyboard.press("Enter")

    expect(page.get_by_role("row", name="7 1 11 %")).to_be_visible()
    vote = full.client("viewer", user="42", channel=CHANNEL).get("vote", params={"id": "lunch"}).json()["vote"]
    assert 7 == vote


def test_a_refused_request_is_found_and_explained(page: Page):
    go_to(page, "Requests")
    page.wait_for_url("**/ui/requests")
    page.wait_for_selector("#reload", state="hidden")
    page.keyboard.press("/")
    expect(page.locator("#filter-search")).to_be_focused()
    page.keyboard.type("status:403")
    page.keyboard.press("Enter")
    page.wait_for_url("**status%3A403**")
    tab_to(page, page.locator("main tbody a").first)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Why it was refused")).to_be_visible()


def test_the_clock_is_advanced(page: Page, full: LiveServer):
    before = full.now()
    go_to(page, "Clock")
    tab_to(page, page.locator("#advance button").first)
    page.keyboard.press("Space")
    expect(page.get_by_role("status")).to_have_text("The clock has moved.")

    assert full.now() > before


def test_the_data_are_deleted_and_restored(page: Page, full: LiveServer):
    tab_to(page, page.locator("#reset-asks > summary"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("button", name="Delete all data"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Undo the reset")).to_be_visible()
    emptied = full.run(full.service.size())
    tab_to(page, page.get_by_role("button", name="Undo the reset"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Undo the reset")).to_be_hidden()

    assert 0 == emptied < full.run(full.service.size())


def test_a_game_is_linked_by_a_pin(page: Page, full: LiveServer):
    page.goto(f"{full.url}/_emulator/rig?url=http://127.0.0.1:9/panel.html&viewers=1&channel_id={CHANNEL}")
    tab_to(page, page.get_by_role("button", name="Request a PIN as a game"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The PIN of the game: ")
    pin = (page.get_by_role("status").text_content() or "").rpartition(" ")[2]
    tab_to(page, page.get_by_label("PIN that the game shows"))
    page.keyboard.type(pin)
    page.keyboard.press("Enter")

    expect(page.get_by_role("status")).to_have_text("The PIN is valid: the game that has it is linked to the channel.")
