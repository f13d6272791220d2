"""How an action ends: its drawer closes, a message stands beside it, and says no more than what happened."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from support.faults import add_fault, faults_of
from support.service import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_a_drawer_closes_and_the_keyboard_leads_to_what_was_made(live: LiveServer, page: Page):
    page.clock.install()
    page.goto(f"{live.url}/_emulator/ui/polls")
    page.focus("#define-drawer > summary")
    page.keyboard.press("Enter")
    page.fill("#define [name='body.id']", "tea")
    page.keyboard.press("Enter")
    opens = page.locator("#result").get_by_role("link", name="Open")
    expect(opens).to_be_focused()
    expect(page.locator("#define")).to_be_hidden()
    expect(page.locator("#result")).to_have_class(re.compile("done.* near"))
    page.clock.run_for(7_000)
    expect(opens).to_be_focused()
    page.focus("#main")
    page.clock.run_for(7_000)

    expect(page.locator("#result")).to_be_empty()


def test_a_message_says_no_more_than_what_happened_and_offers_what_to_do(live: LiveServer, page: Page):
    page.goto(f"{live.url}/_emulator/ui/codes")
    page.click("#redeem-drawer > summary")
    page.fill("#redeem [name=user_id]", "5")
    page.locator("#redeem").get_by_role("button", name="Redeem").click()
    expect(page.locator("#result")).to_contain_text("No code")
    assert "done" not in (page.get_attribute("#result", "class") or ""), "a redeem without a code is no success"

    live.client("viewer", user="1", channel="777").post("vote?id=lunch", json={"value": 1}).raise_for_status()
    add_fault(live, "POST /v1/e/vote", "status")
    page.goto(f"{live.url}/_emulator/ui/polls?id=lunch&client_id=my-extension&channel_id=777")
    page.click("#cast .submit > button")
    expect(page.locator("#result")).to_contain_text("fault f1 answered 503")
    expect(page.locator("#result code")).to_have_text("extcli fault rm f1")

    page.goto(f"{live.url}/_emulator/ui/faults")
    page.click("text=Lose the next broadcast")
    page.click("#result >> text=Undo")
    expect(page.locator("#result")).to_contain_text("f2 is removed.")
    assert ["f1"] == [each["id"] for each in faults_of(live)]
