"""The screen of buffers, read as plain HTML."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from dashboard.html_pages import HtmlPage, read_page
from support.service import CHANNEL, CLIENT_ID, LiveServer

RATINGS = {"id": "ratings", "client_id": CLIENT_ID, "channel_id": CHANNEL}


def buffers(live: LiveServer, **query: str) -> HtmlPage:
    return read_page(f"{live.url}/_emulator/ui/buffers?{urlencode(query)}")


def add(live: LiveServer, value: object, user: str = "5") -> None:
    viewer = live.client("viewer", user=user, channel=CHANNEL)
    viewer.post("accumulate?id=ratings", json=value).raise_for_status()


def test_buffers_are_listed_and_anyone_can_be_made_to_add(live: LiveServer):
    # Buffers are listed
    assert "The first entry creates one." in buffers(live).text
    live.freeze()
    add(live, 1)

    assert [["ratings", CLIENT_ID, CHANNEL, "1", "0 s ago", "in 1 d"]] == buffers(live).tables[0]
    assert "No buffers match." in buffers(live).submit("filters", search="absent").text

    # Anyone can be made to add
    add(live, 1)

    page = buffers(live, **RATINGS)
    assert 200 == page.submit("add", user_id="7", body='{"stars": 4}')["status"]
    assert ["U7", "7", '{"stars":4}'] == buffers(live, **RATINGS).tables[0][0][1:4]
    assert 400 == page.submit("add", body=json.dumps("x" * 300))["status"]


def test_entries_are_newest_first_as_json_with_their_size(live: LiveServer):
    live.freeze()
    add(live, {"stars": 5, "why": ["good"]})
    add(live, {"stars": 4, "why": ["w" * 40]})
    live.client("viewer", opaque="Uhidden", channel=CHANNEL).post("accumulate?id=ratings", json="a")

    page = buffers(live).follow("ratings")
    assert "Buffer ratings" == page.heading
    third, second, first = page.tables[0]
    assert ["0 s ago", "Uhidden", "not shared", '"a"', "3"] == third
    assert ["0 s ago", "U5", "5", '{\n  "stars": 4,\n  "why": [\n    "' + "w" * 40 + '"\n  ]\n}', "62"] == second
    assert ["0 s ago", "U5", "5", '{"stars":5,"why":["good"]}', "26"] == first


def test_the_start_of_the_window_can_be_chosen(live: LiveServer):
    live.freeze()
    add(live, 1)
    live.advance(100_000)
    add(live, 2)

    page = buffers(live, **RATINGS)
    assert ["2", "1"] == [row[3] for row in page.tables[0]]
    assert ["2"] == [row[3] for row in page.follow("The last minute").tables[0]]
    assert ["2"] == [row[3] for row in page.submit("filters", start=str(live.now())).tables[0]]
    assert 2 == len(page.follow("The last minute").follow("All").tables[0])
    assert "No entries since this time" in page.submit("filters", start=str(live.now() + 1)).text
