"""The demo: the service plays it, in the namespace `demo`."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from dashboard.rig_pages import wait_for_script
from emulator.control.demo import Demo
from emulator.core.clock import HOUR
from emulator.dashboard.pages import PATHS_OUTSIDE_UI, screens
from support.pages import fetched, main_of
from support.process import wait_until
from support.service import LiveServer


@pytest.fixture
def demo(live: LiveServer) -> Demo:
    """The demo of the service, which does not play yet."""
    assert live.service.namespaces is not None
    return live.run(live.service.namespaces.open("demo")).demo


def play(live: LiveServer) -> None:
    httpx.post(f"{live.url}/_emulator/demo").raise_for_status()


def read(live: LiveServer, path: str) -> dict[str, object]:
    """Read from the control API of the namespace `demo`."""
    return dict(httpx.get(f"{live.url}/_ns/demo/_emulator/{path}").raise_for_status().json())


def test_each_play_begins_anew_and_has_all_acts(live: LiveServer, demo: Demo):
    demo.pace = 0
    play(live)
    wait_until(lambda: read(live, "contents/codes")["rows"])
    play(live)
    wait_until(lambda: not demo.is_playing)

    polls = read(live, "contents/polls")["rows"]
    assert ["expired"] * 3 == [each["status"] for each in polls]
    assert all(1_000 < each["count"] < 1_300 for each in polls)
    assert [15] == [each["count"] for each in read(live, "contents/codes")["rows"]]
    assert 2 * HOUR == read(live, "clock")["offset"]
    journal = live.service.namespaces.find_open("demo").journal.newest(10_000)
    assert {200, 400, 403, 503} <= {each.status for each in journal}
    assert {12, 1} == {each.delivered for each in journal if each.kind == "delivery"}
    assert 0 == read(live, "sockets")["total"]
    assert [] == httpx.get(f"{live.url}/_emulator/contents/polls").json()["rows"], "all is in its own namespace"


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/_emulator/demo/stop"), ("POST", "/_ns/demo/_emulator/reset"), ("DELETE", "/_ns/demo")],
)
def test_a_stop_a_reset_and_a_drop_end_it(live: LiveServer, demo: Demo, method: str, path: str):
    play(live)
    assert demo.is_playing

    httpx.request(method, live.url + path).raise_for_status()

    wait_until(lambda: not demo.is_playing)


def test_no_link_plays_it(live: LiveServer, demo: Demo):
    assert "Play a demo stream" in main_of(f"{live.url}/_emulator/")
    assert "Play a demo stream" not in main_of(f"{live.url}/_ns/demo/_emulator/")
    for path in ("/_ns/demo/_emulator/?play=1", "/_emulator/demo", "/_ns/demo/_emulator/demo"):
        httpx.get(live.url + path, headers={"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})

    assert 0 == demo.ends_at


def test_every_screen_shows_what_is_left_of_it(live: LiveServer, demo: Demo):
    play(live)
    for name in screens():
        page = fetched(f"{live.url}/_ns/demo/_emulator/{PATHS_OUTSIDE_UI.get(name, f'ui/{name}')}").text

        assert re.search(r"▶ demo <span[^>]*>0[23]:\d\d</span> · stop", page), name


@pytest.mark.long
def test_one_click_plays_it_and_each_click_leads_on(live: LiveServer, page: Page):
    page.goto(live.url)
    page.get_by_role("button", name="Play a demo stream").click()
    expect(page.locator(".stage caption")).to_have_text(re.compile(r"\d votes"))
    expect(page.locator(".phones li")).to_have_count(4)
    expect(page.locator("header")).to_contain_text("13 sockets")
    page.get_by_role("link", name="Requests", exact=True).click()
    expect(page.locator("h1")).to_have_text("Requests")
    wait_for_script(page)
    page.get_by_role("button", name="stop").click()
    page.get_by_role("button", name="Play again").click()

    expect(page.locator(".stage .on-air")).to_have_text("On air")
