"""The screen of rankings."""

from __future__ import annotations

from urllib.parse import urlencode

from dashboard.html_pages import HtmlPage, read_page
from support.service import CHANNEL, CLIENT_ID, LiveServer

COLOR = {"id": "color", "client_id": CLIENT_ID, "channel_id": CHANNEL}


def rankings(live: LiveServer, **query: str) -> HtmlPage:
    return read_page(f"{live.url}/_emulator/ui/rankings?{urlencode(query)}")


def answer(live: LiveServer, user: str, text: str, ranking: str = "color", channel: str = CHANNEL) -> None:
    viewer = live.client("viewer", user=user, channel=channel)
    viewer.post("rank", params={"id": ranking}, json={"key": text}).raise_for_status()


def test_rankings_are_listed_and_anyone_can_be_made_to_answer(live: LiveServer):
    # Rankings are listed
    assert "The first answer creates one." in rankings(live).text
    live.freeze()
    answer(live, "1", "blue")

    assert [["color", CLIENT_ID, CHANNEL, "1", "0 s ago", "in 1 d"]] == rankings(live).tables[0]
    assert "No rankings match." in rankings(live).submit("filters", search="absent").text

    # Anyone can be made to answer
    answer(live, "1", "red")

    assert 200 == rankings(live, **COLOR).submit("submit", user_id="7", body__key="green")["status"]
    assert ["U7", "7", "green"] == rankings(live, **COLOR).tables[1][-1][:3]


def test_a_ranking_has_bars_of_its_answers(live: LiveServer):
    for user, text in (("1", "red"), ("2", "blue"), ("3", "blue")):
        answer(live, user, text)

    page = rankings(live).follow("color")
    assert "Ranking color" == page.heading
    assert [("blue", "2"), ("red", "1")] == [(text, score) for text, _, score, *_ in page.tables[0]]
    assert "The answers of 3 users" in page.text


def test_rankings_are_sorted_by_their_answers(live: LiveServer):
    for ranking, users in (("a", 1), ("b", 3), ("c", 2)):
        for user in range(users):
            answer(live, str(user + 1), "blue", ranking)

    page = rankings(live, client_id=CLIENT_ID)
    assert ["a", "b", "c"] == [row[0] for row in page.tables[0]]
    sorted_page = page.follow("Answers")
    assert sorted_page.url.endswith(f"client_id={CLIENT_ID}&sort=most")
    assert ["b", "c", "a"] == [row[0] for row in sorted_page.tables[0]]


def test_a_ranking_is_deleted_in_its_channel_only(live: LiveServer):
    answer(live, "1", "red")
    answer(live, "1", "red", channel="888")

    assert 200 == rankings(live, **COLOR).submit("delete")["status"]
    assert ["888"] == [row[2] for row in rankings(live).tables[0]]
