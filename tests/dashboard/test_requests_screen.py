"""Requests: search, one entry, send again."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest
from playwright.sync_api import Page, expect

from support.pages import fetched, main_of
from support.service import LiveServer


@pytest.fixture
def requests(live: LiveServer) -> str:
    """The URL of the screen, after a vote, a refused vote and a refused deletion."""
    viewer = live.client("viewer", user="1", channel="777")
    viewer.post("vote", params={"id": "rps"}, json={"value": 1})
    viewer.post("vote", json={"value": 900})
    viewer.delete("vote")
    return f"{live.url}/_emulator/ui/requests"


def latest(live: LiveServer) -> int:
    return int(httpx.get(f"{live.url}/_emulator/journal").json()["mark"])


def test_the_screen_and_its_entries_say_why_requests_were_refused(live: LiveServer, requests: str):
    # The screen lists requests with why they were refused
    main = main_of(requests)

    assert "POST /v1/e/vote?id=rps" in main
    assert "value: 900 is not within -99 to 99" in main
    assert "viewer <bdi>1</bdi> @ <bdi>777</bdi>" in main

    # An entry shows bodies caller and refusal
    main = main_of(f"{requests}?entry={latest(live) - 1}")

    assert "<b><bdi>Value out of bounds</bdi></b>" in main
    assert "&#34;value&#34;: 900" in main
    assert " of <bdi>my-extension</bdi>" in main
    assert "extcli explain" in main

    # An entry has what it got and expected and what production does
    main = main_of(f"{requests}?entry={latest(live)}")

    assert "<dt>Got</dt><dd>role viewer</dd>" in main
    assert "<dt>Expected</dt><dd>role broadcaster, admin or backend</dd>" in main
    assert "production refuses this: exp" in main


@pytest.mark.parametrize(
    ("query", "found"),
    [("status=4xx", 2), ("method=POST&path=vote", 2), ("role=admin", 0), ("search=status:4xx+rps", 0),
     ("search=user:1+method:POST+status:200", 1), ("search=status:4xx+status:5xx", 2), ("search=search:rps", 1),
     ("search=reason:any", 2), ("reason=Value+out+of+bounds", 1)],
)  # fmt: skip
def test_filters_and_words_of_the_search_filter_rows_and_picture(requests: str, query: str, found: int):
    main = main_of(f"{requests}?{query}")

    assert found == main.count('<tr data-entry="')
    assert found == sum(map(int, re.findall(r": (\d+) requests?</title>", main)))


@pytest.mark.parametrize("word", ["status:abc", "user:1 user:2"])
def test_a_wrong_word_of_the_search_is_reported_below_the_form(requests: str, word: str):
    main = fetched(f"{requests}?search={word}").text

    assert f'name="search" type="search" value="{word}"' in main
    assert '<p class="warning">' in main


@pytest.mark.long
def test_an_entry_can_be_changed_and_sent_again(live: LiveServer, requests: str, page: Page):
    page.goto(f"{requests}?entry={latest(live) - 1}")
    page.click("#replay .submit > button")
    page.wait_for_selector("#result:has-text('value: 900')")
    page.fill("#replay-body", '{"value": 2}')
    page.click("#replay .submit > button")
    page.wait_for_selector("#result:has-text('The service accepted the request.')")

    assert 2 == live.client("viewer", user="1", channel="777").get("vote").json()["vote"]


@pytest.mark.parametrize(
    ("path", "body"),
    [("vote", {"value": "eyJhbGciOiJIUzI1NiJ9.e30.x"}), ("vote?t=eyJhbGciOiJIUzI1NiJ9.e30.x", {"value": 1}),
     ("json_store", {"a": "b" * 5_000})],
)  # fmt: skip
def test_an_incomplete_entry_cannot_be_sent_again(live: LiveServer, path: str, body: dict[str, object]):
    live.client("viewer", user="1", channel="777").post(path, json=body)
    main = main_of(f"{live.url}/_emulator/ui/requests?entry={latest(live)}")

    assert "The journal has only a part of the request" in main
    assert 'id="replay"' not in main


def test_a_broadcast_is_one_row_and_shows_what_it_caused(live: LiveServer):
    live.client("broadcaster", user="777", channel="777").post("broadcast", json={"event": "round", "data": {}})
    (row,) = main_of(f"{live.url}/_emulator/ui/requests?search=round").split("<tr data-entry")[1:]
    assert "POST /v1/e/broadcast" in row
    assert "<bdi>event:round</bdi></a> 0 delivered" in row
    (number,) = re.findall(r'^="(\d+)"', row)
    main = main_of(f"{live.url}/_emulator/ui/requests?entry={number}")
    chain = re.findall("<li>(.*)</li>", main.partition('<ol class="chain">')[2].partition("</ol>")[0])

    assert any("POST /v1/e/broadcast" in each for each in chain)
    assert any("event:round" in each and "0 delivered" in each for each in chain)


@pytest.mark.slow
@pytest.mark.long
def test_keys_move_between_rows_and_a_pause_holds_them(live: LiveServer, requests: str, page: Page):
    page.goto(requests)
    page.wait_for_selector("#reload", state="hidden")
    rows = page.locator("#rows tbody th a")
    for key, row in (("j", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        expect(rows.nth(row)).to_be_focused()
    page.keyboard.press("p")
    live.client("viewer", user="2", channel="777").get("vote?id=later")
    expect(page.locator("nav")).to_contain_text("Requests4")
    assert 3 == rows.count(), "the header goes on, the rows stay"
    page.keyboard.press("/")
    page.keyboard.type("jkp")
    assert "jkp" == page.input_value("#filter-search")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#rows")).to_contain_text("id=later")


def test_rows_are_sorted_by_their_duration(live: LiveServer, requests: str):
    viewer = live.client("viewer", user="1", channel="777")
    viewer.get("rank")
    main = main_of(requests)
    (address,) = re.findall('<a href="([^"]*)">Duration</a>', main)
    shown = main_of(f"{live.url}{unescape(address)}")
    durations = [float(each) for each in re.findall(r'data-head="Duration" class="number">([0-9.]+) ms', shown)]

    assert 4 == len(durations)
    assert sorted(durations, reverse=True) == durations
    assert re.findall('<a href="[^"]*">Time</a>', shown)


def test_pages_lead_to_newer_and_earlier_entries(live: LiveServer):
    viewer = live.client("viewer", user="1", channel="777")
    for number in range(150):
        viewer.get(f"vote?id=n{number}")
    address = f"{live.url}/_emulator/ui/requests?path=vote"

    def polls(link: str, page: str) -> tuple[str, str, str]:
        (target,) = re.findall(f'<a href="([^"]*)">{link}</a>', page)
        main = main_of(f"{live.url}{unescape(target)}")
        ids = re.findall("id=n([0-9]+)", main)
        return main, ids[0], ids[-1]

    second, *seconds = polls("Earlier", main_of(address))
    third, *thirds = polls("Earlier", second)
    back, *backs = polls("Newer", third)
    first, *firsts = polls("Newer", back)

    assert [["99", "50"], ["49", "0"], ["99", "50"], ["149", "100"]] == [seconds, thirds, backs, firsts]
    assert ">Newer</a>" not in first
    assert ">Earlier</a>" not in third
