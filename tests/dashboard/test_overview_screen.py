"""The overview."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from emulator.core.config.settings import Settings
from support.pages import chromium, main_of
from support.service import LiveServer, live_server


def vote(live: LiveServer, user: str, value: int = 1, poll: str = "default") -> None:
    live.client("viewer", user=user, channel="777").post("vote", params={"id": poll}, json={"value": value})


def test_the_screen_has_lines_that_connect_clients(live: LiveServer):
    main = main_of(f"{live.url}/_emulator/")

    assert f"&lt;script src=&#34;{live.url}/_emulator/sdk.js&#34;" in main
    assert f"ws://{live.url.removeprefix('http://')}/0.2.0/my-extension" in main
    assert f"export EXTCLI_URL={live.url} EXTCLI_CLIENT_ID=my-extension" in main
    assert f"{live.url}/v1/e/vote?id=default" in main


def test_the_screen_says_whether_the_data_survives_a_stop(live: LiveServer, tmp_path: Path):
    assert "the data is gone" in main_of(f"{live.url}/_emulator/")
    with live_server(Settings(data=f"sqlite://{tmp_path}/data.db")) as kept:
        assert "the data stays" in main_of(f"{kept.url}/_emulator/")


def test_the_busiest_poll_is_the_one_with_most_of_the_latest_votes(live: LiveServer):
    for poll, votes in (("quiet", 1), ("busy", 3), ("late", 1)):
        for user in range(votes):
            vote(live, str(user), poll=poll)
    main = main_of(f"{live.url}/_emulator/")

    assert 'channel_id=777"><bdi>busy</bdi></a>' in main
    assert "<caption>3 votes</caption>" in main


def test_the_steps_tick_themselves_off(live: LiveServer):
    assert 0 == main_of(f"{live.url}/_emulator/").count("Done: ")
    vote(live, "1")
    assert "Done: a first vote" in main_of(f"{live.url}/_emulator/")
    httpx.get(f"{live.url}/_emulator/sdk.js")
    assert "Done: a page has connected" in main_of(f"{live.url}/_emulator/")
    httpx.post(f"{live.url}/_ns/test-1").raise_for_status()
    assert "First steps" not in main_of(f"{live.url}/_emulator/"), "all three are done"


def test_its_cards_count_the_last_minute(live: LiveServer):
    live.freeze()
    vote(live, "1", 900)
    refused = r'Refused in a minute</h2><p class="big"><a [^>]*>(\d)</a>'

    assert ["1"] == re.findall(refused, main_of(f"{live.url}/_emulator/"))
    live.advance(61_000)
    assert ["0"] == re.findall(refused, main_of(f"{live.url}/_emulator/"))


@pytest.mark.slow
@pytest.mark.long
def test_each_click_on_an_option_is_the_vote_of_another_viewer(live: LiveServer):
    definition = {"prompt": "Which boss?", "options": ["Dragon", "Golem"]}
    live.client("broadcaster", user="777", channel="777").post("vote_config", json={"config": definition})
    with chromium() as browser:
        page = browser.new_page()
        page.goto(live.url)
        for _ in range(5):
            page.get_by_role("button", name="Vote Golem as a new viewer").click()
        expect(page.get_by_role("row", name="Golem 1 5 100 %")).to_be_visible()
