"""The screen of rankings."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from dashboard.html_pages import HtmlPage, read_page
from support.service import CHANNEL, CLIENT_ID, LiveServer

COLOR = {"id": "color", "client_id": CLIENT_ID, "channel_id": CHANNEL}


def rankings(live: LiveServer, **query: str) -> HtmlPage:
    return read_page(f"{live.url}/_emulator/ui/rankings?{urlencode(query)}")


def answer(live: LiveServer, user: str, text: str, ranking: str = "color", channel: str = CHANNEL) -> None:
    viewer = live.client("viewer", user=user, channel=channel)
    viewer.post("rank", params={"id": ranking}, json={"key": text}).raise_for_status()


def test_rankings_are_listed(live: LiveServer):
    assert "The first answer creates one." in rankings(live).text
    live.freeze()
    answer(live, "1", "blue")

    assert [["color", CLIENT_ID, CHANNEL, "1", "0 s ago", "in 1 d"]] == rankings(live).tables[0]
    assert "No rankings match." in rankings(live).submit("filters", search="absent").text


def test_a_ranking_has_bars_of_its_answers(live: LiveServer):
    for user, text in (("1", "red"), ("2", "blue"), ("3", "blue")):
        answer(live, user, text)

    page = rankings(live).follow("color")
    assert "Ranking color" == page.heading
    assert [("blue", "2"), ("red", "1")] == [(text, score) for text, _, score, *_ in page.tables[0]]
    assert "The answers of 3 users" in page.text


def test_anyone_can_be_made_to_answer(live: LiveServer):
    answer(live, "1", "red")

    assert 200 == rankings(live, **COLOR).submit("submit", user_id="7", body__key="green")["status"]
    assert ["U7", "7", "green"] == rankings(live, **COLOR).tables[1][-1][:3]


@pytest.mark.slow
def test_rankings_are_sorted_by_their_answers_and_their_total_is_shown(live: LiveServer, page: Page):
    for ranking, users in (("a", 1), ("b", 3), ("c", 2)):
        for user in range(users):
            answer(live, str(user + 1), "blue", ranking)
    page.goto(f"{live.url}/_emulator/ui/rankings?client_id={CLIENT_ID}")
    names = page.locator("main tbody th")
    assert ["a", "b", "c"] == names.all_inner_texts()
    page.get_by_role("link", name="Answers").click()
    page.wait_for_url("**client_id=*&sort=most")
    assert ["b", "c", "a"] == names.all_inner_texts()


def test_a_ranking_is_deleted_in_its_channel_only(live: LiveServer):
    answer(live, "1", "red")
    answer(live, "1", "red", channel="888")

    assert 200 == rankings(live, **COLOR).submit("delete")["status"]
    assert ["888"] == [row[2] for row in rankings(live).tables[0]]
