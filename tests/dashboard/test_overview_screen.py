"""The overview."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from emulator.core.settings import Settings
from support.pages import main_of
from support.service import LiveServer, live_server


def vote(live: LiveServer, user: str, value: int = 1, poll: str = "default") -> None:
    live.client("viewer", user=user, channel="777").post("vote", params={"id": poll}, json={"value": value})


def test_the_screen_has_lines_that_connect_clients_and_says_if_data_survives_a_stop(live: LiveServer, tmp_path: Path):
    # The screen has lines that connect clients
    main = main_of(f"{live.url}/_emulator/")

    assert f"&lt;script src=&#34;{live.url}/_emulator/sdk.js&#34;" in main
    assert f"ws://{live.url.removeprefix('http://')}/0.2.0/my-extension" in main
    assert f"export EXTCLI_URL={live.url} EXTCLI_CLIENT_ID=my-extension" in main
    assert f"{live.url}/v1/e/vote?id=default" in main

    # The screen says whether the data survives a stop
    assert "the data is gone" in main_of(f"{live.url}/_emulator/")
    with live_server(Settings(data=f"sqlite://{tmp_path}/data.db")) as kept:
        assert "the data stays" in main_of(f"{kept.url}/_emulator/")


def test_the_first_steps_stay_until_a_vote_and_then_the_busiest_poll_is_shown(live: LiveServer):
    # Calls of the control API alone leave the first steps
    httpx.post(f"{live.url}/_emulator/clock", json={"advance": 1_000}).raise_for_status()
    assert '<details id="steps" open>' in main_of(f"{live.url}/_emulator/")
    vote(live, "1")
    assert "Votes per second" in main_of(f"{live.url}/_emulator/")

    # The busiest poll is the one with most of the latest votes
    for poll, votes in (("quiet", 1), ("busy", 3), ("late", 1)):
        for user in range(votes):
            vote(live, str(user), poll=poll)
    main = main_of(f"{live.url}/_emulator/")

    assert 'channel_id=777"><bdi>busy</bdi></a>' in main
    assert 'aria-label="1: 3 votes"' in main


def test_the_steps_tick_themselves_off():
    with live_server() as live:
        assert [] == re.findall("✓ ([a-z ]*)", main_of(f"{live.url}/_emulator/"))
        vote(live, "1")
        assert ["cast a first vote"] == re.findall("✓ ([a-z ]*)", main_of(f"{live.url}/_emulator/"))
        live.reset()
        assert [] == re.findall("✓ ([a-z ]*)", main_of(f"{live.url}/_emulator/")), "a reset is no test"
        httpx.get(f"{live.url}/_emulator/sdk.js")
        assert ["connect a page"] == re.findall("✓ ([a-z ]*)", main_of(f"{live.url}/_emulator/"))
        vote(live, "1")
        httpx.post(f"{live.url}/_ns/test-1").raise_for_status()
        assert "First steps" not in main_of(f"{live.url}/_emulator/"), "all three are done"


def test_its_card_counts_refusals_by_reason_and_leads_to_exactly_those():
    fault = {"match": "GET /v1/e/vote", "effect": "status"}
    with live_server() as live:  # a journal without the refusals of other tests
        httpx.post(f"{live.url}/_emulator/faults", json=fault).raise_for_status()
        vote(live, "1")
        vote(live, "1", 900)
        for _ in range(2):
            live.client("viewer", user="1", channel="777").get("vote")
        found = re.findall(r'<a href="([^"]*)">(\d) <bdi>([^<]*)', main_of(f"{live.url}/_emulator/"))

        assert [("2", "Fault"), ("1", "Value out of bounds")] == [(count, reason) for _, count, reason in found]
        assert [2, 1] == [main_of(f"{live.url}{unescape(link)}").count('<tr data-entry="') for link, _, _ in found]


def test_a_broadcast_and_equal_votes_of_five_seconds_are_one_row_each(live: LiveServer):
    live.freeze()
    for user in range(3):
        vote(live, str(user), poll="boss")
    live.client("broadcaster", user="777", channel="777").post("broadcast", json={"event": "round", "data": {}})
    rows = re.findall('<a href="[^"]*">(.*?)</a>', main_of(f"{live.url}/_emulator/").partition('class="happens"')[2])

    assert ["<bdi>POST broadcast</bdi>", "3 votes in <b><bdi>boss</bdi></b>"] == rows[:2]


@pytest.mark.slow
@pytest.mark.long
def test_each_click_on_an_option_is_the_vote_of_another_viewer(live: LiveServer, page: Page):
    definition = {"prompt": "Which boss?", "options": ["Dragon", "Golem"]}
    live.client("broadcaster", user="777", channel="777").post("vote_config", json={"config": definition})
    page.goto(live.url)
    for _ in range(5):
        page.get_by_role("button", name="Vote Golem as a new viewer").click()
    expect(page.get_by_role("row", name="Golem 1 5 100 %")).to_be_visible()
