"""The overview."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.pages import chromium, main_of
from support.service import CLIENT_ID, LiveServer, live_server


def vote(live: LiveServer, user: str, value: int = 1, poll: str = "default") -> None:
    live.client("viewer", user=user, channel="777").post("vote", params={"id": poll}, json={"value": value})


def test_the_screen_has_lines_that_connect_clients(live: LiveServer):
    main = main_of(f"{live.url}/_emulator/")

    assert f"&lt;script src=&#34;{live.url}/_emulator/sdk.js&#34;" in main
    assert f"ws://{live.url.removeprefix('http://')}/0.2.0/my-extension" in main
    assert f"export EXTCLI_URL={live.url} EXTCLI_CLIENT_ID=my-extension" in main
    assert f"{live.url}/v1/e/vote?id=default" in main


def test_its_lines_lead_to_the_namespace_of_the_page(live: LiveServer):
    main = main_of(f"{live.url}/_ns/blue/_emulator/")

    assert f"{live.url}/_ns/blue/_emulator/sdk.js" in main
    assert f"extcli reset --keep 1m --url {live.url}/_ns/blue" in main


def test_the_screen_says_whether_the_data_survives_a_stop(live: LiveServer, tmp_path: Path):
    assert "the data is gone" in main_of(f"{live.url}/_emulator/")
    with live_server(Settings(data=f"sqlite://{tmp_path}/data.db")) as kept:
        assert "the data stays" in main_of(f"{kept.url}/_emulator/")


def test_its_lines_have_a_registered_client_id():
    extensions = {"a <b>": Extension("a <b>", (b"secret",))}
    with live_server(Settings(extensions=extensions)) as live:
        main = main_of(f"{live.url}/_emulator/")

    assert "/0.2.0/a &lt;b&gt;" in main
    assert "<li><bdi>a &lt;b&gt;</bdi></li>" in main


def test_the_screen_says_once_that_production_accepts_no_token_of_the_sandbox(live: LiveServer):
    token = httpx.post(f"{live.url}/v1/e/authtoken?helper=1", json={"app_id": CLIENT_ID}).json()["token"]
    for _ in range(3):
        live.bearer(token).get("vote").raise_for_status()

    main = main_of(f"{live.url}/_emulator/")

    assert "No request so far would have had another answer." in main
    assert 1 == main.count("Production accepts no token of the sandbox (rule <code>stage</code>)")
    assert "Unknown:" not in main


def test_the_screen_shows_no_secret():
    extensions = {"mine": Extension("mine", (b"a very secret word",))}
    with live_server(replace(Settings(), extensions=extensions)) as live:
        assert "a very secret word" not in main_of(f"{live.url}/_emulator/")


@pytest.mark.long
def test_deleting_everything_and_undoing_it_say_what_happened(live: LiveServer):
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).raise_for_status()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(live.url)
        page.click("#reset-asks > summary")
        page.click("#reset .submit > button")
        page.wait_for_selector("#result:has-text('All data is deleted.')")
        page.click("#undo .submit > button")
        page.wait_for_selector("#result:has-text('The data is back.')")

    assert 1 == live.client("viewer", user="1", channel="777").get("vote").json()["stats"]["count"]


def test_the_busiest_poll_is_the_one_with_most_of_the_latest_votes(live: LiveServer):
    for poll, votes in (("quiet", 1), ("busy", 3), ("late", 1)):
        for user in range(votes):
            vote(live, str(user), poll=poll)
    main = main_of(f"{live.url}/_emulator/")

    assert 'channel_id=777"><bdi>busy</bdi></a>' in main
    assert "<caption>3 votes</caption>" in main


def test_the_screen_shows_the_options_of_the_busiest_poll_with_their_share(live: LiveServer):
    definition = {"prompt": "Which boss?", "options": ["Dragon", "Golem"]}
    live.client("broadcaster", user="777", channel="777").post("vote_config", json={"config": definition})
    for user, value in (("1", 0), ("2", 0), ("3", 0), ("4", 1)):
        vote(live, user, value)
    main = main_of(f"{live.url}/_emulator/")

    assert "Which boss?" in main
    assert re.search(r'0 <bdi>Dragon</bdi></th><td class="number">3</td><td class="number share">75 %', main)
    assert 'aria-label="Vote Golem as a new viewer"' in main


def test_a_poll_of_an_earlier_run_is_the_busiest_without_new_votes(tmp_path: Path):
    settings = Settings(data=f"sqlite://{tmp_path}/data.db")
    with live_server(settings) as before:
        vote(before, "1", poll="old")
    with live_server(settings) as after:
        assert "<bdi>old</bdi></a></h2>" in main_of(f"{after.url}/_emulator/")


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
    vote(live, "2")

    assert re.search(r'Refused in a minute</h2><p class="big"><a [^>]*>1</a>', main_of(f"{live.url}/_emulator/"))
    live.advance(61_000)
    assert re.search(r'Refused in a minute</h2><p class="big"><a [^>]*>0</a>', main_of(f"{live.url}/_emulator/"))
    assert re.search(r'Expires next</h2><p class="big"><a [^>]*>in 6 d 23 h</a>', main_of(f"{live.url}/_emulator/"))


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
        expect(page.get_by_role("row", name="1 Golem 5 100 %")).to_be_visible()


def test_the_screen_warns_of_what_production_would_refuse(live: LiveServer):
    live.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).raise_for_status()
    main = main_of(f"{live.url}/_emulator/")

    assert '<a href="/_emulator/ui/requests?production=exp">exp</a>' in main
    assert "extcli explain exp" in main
