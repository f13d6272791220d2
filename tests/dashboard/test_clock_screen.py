"""The clock and namespaces."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from support.pages import main_of
from support.service import Client, LiveServer

START = 2_000_000_000_000
DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "instant"),
    [("2033-05-18T03:33:20Z", START), ("2033-05-18T03:33:20", START), ("2033-05-18T05:33:20+02:00", START),
     (str(START), START), ("2033-05-18", START - 12_800_000)],
)  # fmt: skip
def test_the_clock_can_be_set_to_a_time_in_words(live: LiveServer, stranger: Client, text: str, instant: int):
    answer = stranger.post("/_emulator/clock", json={"set": text, "freeze": True})

    assert instant == answer.json()["now"]


@pytest.mark.parametrize("text", ["tomorrow", "", "2033-13-01", "99999-01-01", "9" * 30])
def test_a_time_that_cannot_be_read_is_refused(live: LiveServer, stranger: Client, text: str):
    answer = stranger.post("/_emulator/clock", json={"set": text, "freeze": True})

    assert 400 == answer.status_code
    assert answer.json()["info"].startswith("set: ")
    assert not stranger.get("/_emulator/clock").json()["frozen"]


@pytest.mark.long
def test_its_forms_move_set_and_freeze_the_clock(live: LiveServer, page: Page):
    live.set(START)
    page.goto(f"{live.url}/_emulator/ui/clock")
    page.click("summary:has-text('+ 1 d')")
    page.get_by_role("button", name="+ 1 d").click()
    page.wait_for_selector("#result:has-text('The clock has moved.')")
    assert START + DAY == live.now()
    page.locator("#set-asks > summary").click()
    page.fill("#set-set", "2033-05-18T03:33:21")
    page.click("#set .submit > button")
    page.wait_for_selector("#result:has-text('The clock is set.')")
    assert START + 1_000 == live.now()
    page.click("text=Let it run")
    expect(page.locator("dl")).to_contain_text("running")


def test_the_screen_lists_what_expires_next_and_jumps_there(live: LiveServer, stranger: Client):
    live.client("viewer", user="1", channel="777").post("vote", params={"id": "rps"}, json={"value": 1})
    main = main_of(f"{live.url}/_emulator/ui/clock")
    (at,) = [each["at"] for each in stranger.get("/_emulator/clock/next").json()["next"] if each["id"] == "rps"]

    assert "<bdi>rps</bdi>" in main
    assert f'name="set" value="{at}"' in main
    moved = stranger.post("/_emulator/clock", data={"set": str(at)}).json()
    assert ["rps"] == [each["id"] for each in moved["expired"] if each["kind"] == "poll"]


def test_forms_create_fork_and_delete_namespaces(live: LiveServer, stranger: Client):
    form = {"name": "teal"}
    assert {"namespace": "teal"} == stranger.post("/_ns", data=form).json()
    assert {"namespace": "azure"} == stranger.post("/_ns", data={"name": "azure", "from": "teal"}).json()
    assert {} == stranger.post("/_ns", data={"drop": "teal"}).json()

    names = stranger.get("/_ns").json()["namespaces"]
    assert "azure" in names
    assert "teal" not in names
