"""The demo: a page that sends a crowd into the namespace `demo`."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from support.pages import fetched, main_of
from support.service import LiveServer


@pytest.fixture
def playing(live: LiveServer, page: Page) -> Page:
    """The page of the demo while its crowd votes."""
    page.goto(live.url)
    page.get_by_role("link", name="Play a demo stream").click()
    page.click("#play")
    expect(page.locator("#play")).to_have_text(re.compile(r"Stop \(1\d\d s left\)"))
    expect(page.locator(".stage caption")).to_have_text(re.compile(r"\d votes"))
    return page


def rows(live: LiveServer, kind: str) -> list[dict[str, object]]:
    """Return the contents of the namespace `demo` of a kind."""
    found = httpx.get(f"{live.url}/_ns/demo/_emulator/contents/{kind}").raise_for_status().json()["rows"]
    return list(found)


def test_an_empty_overview_offers_the_demo_and_the_demo_does_not(live: LiveServer):
    link = '<a class="button" href="/_ns/demo/_emulator/"'

    assert link in main_of(f"{live.url}/_emulator/")
    assert link not in main_of(f"{live.url}/_ns/demo/_emulator/")
    assert "/demo.js" in fetched(f"{live.url}/_ns/demo/_emulator/").text
    assert "/demo.js" not in fetched(f"{live.url}/_emulator/").text


@pytest.mark.slow
@pytest.mark.long
def test_a_crowd_votes_ranks_redeems_and_receives_broadcasts_until_it_is_stopped(live: LiveServer, playing: Page):
    expect(playing.locator(".stage .on-air")).to_have_text("Broadcast: event:round")
    expect(playing.locator(".stage .words span")).to_have_count(3)
    expect(playing.locator("header .refusal")).to_be_visible()
    playing.click("#play")
    expect(playing.locator("#play")).to_have_text("Play")
    ends = [row["count"] for row in rows(live, "polls")]

    assert [True] == [isinstance(count, int) and count > 5 for count in ends]
    assert [1] == [row["count"] for row in rows(live, "codes")], "one code was redeemed"
    assert [] == httpx.get(f"{live.url}/_emulator/contents/polls").json()["rows"], "all is in its own namespace"
    assert not playing.evaluate("isPlaying")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("query", ["?play=1", "?play", "#play"])
def test_no_link_starts_the_demo(live: LiveServer, page: Page, query: str):
    vote = {"method": "POST", "path": "/v1/e/vote?id=boss", "role": "viewer", "user_id": "5", "body": {"value": 3}}
    place = {"client_id": "demo-extension", "channel_id": "1001"}
    httpx.post(f"{live.url}/_ns/demo/_emulator/call", json={**vote, **place}).raise_for_status()
    before = rows(live, "polls"), rows(live, "codes")
    page.goto(f"{live.url}/_ns/demo/_emulator/{query}")
    expect(page.locator("#play")).to_have_text("Play")
    page.wait_for_selector("#reload", state="hidden")  # the first live update

    assert before == (rows(live, "polls"), rows(live, "codes"))
    assert not page.evaluate("isPlaying || underWay")


@pytest.mark.slow
@pytest.mark.long
def test_the_crowd_ends_by_itself(playing: Page):
    playing.evaluate("beat = 1_000")

    expect(playing.locator("#play")).to_have_text("Play")
