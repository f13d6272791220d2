"""The screen of reward codes."""

from __future__ import annotations

import re

import httpx
import pytest

from dashboard.forms import forms_of
from support.pages import main_of
from support.service import Client, LiveServer

CODES = ["HAT-7391", "HAT-7392", "HAT-7393"]


@pytest.fixture
def screen(live: LiveServer, admin: Client) -> str:
    """The URL of the screen; there is a set of three codes."""
    admin.put("codes", json={"codes": [CODES], "names": ["<b>Hat</b>"]}).raise_for_status()
    return f"{live.url}/_emulator/ui/codes"


def call(url: str, form: str, **changes: str) -> httpx.Response:
    """Send a form, and return the response of the call."""
    return forms_of(url)[form].send(**changes).raise_for_status()


def test_the_screen_lists_sets_with_their_progress(screen: str, admin: Client, viewer):
    admin.post("codes/mark_from_list", json={"users": ["5"], "prizes": [0], "prize_limits": [1]}).raise_for_status()
    viewer("5").post("codes/redeem", json={"prize": 0}).raise_for_status()

    main = main_of(screen)

    assert "&lt;b&gt;Hat&lt;/b&gt;" in main
    for head, number in (("Handed out", 1), ("Left", 2)):
        assert f'<td data-head="{head}" class="number">{number}</td>' in main


def test_codes_of_a_user_are_masked(screen: str, admin: Client, viewer):
    admin.post("codes/mark_from_list", json={"users": ["5"], "prizes": [0, 0], "prize_limits": [2]}).raise_for_status()
    viewer("5").post("codes/redeem", json={"prize": 0}).raise_for_status()

    main = main_of(f"{screen}?user=5")

    assert "H•••••••" in main
    assert '<td data-head="May redeem" class="number">1</td>' in main
    assert [] == [code for code in CODES if code in main]


def test_the_screen_lists_the_latest_redemptions_without_the_codes(screen: str, admin: Client, viewer):
    admin.post("codes/mark_from_list", json={"users": ["5"], "prizes": [0], "prize_limits": [1]}).raise_for_status()
    for prize in (0, 0):
        viewer("5").post("codes/redeem", json={"prize": prize})

    main = main_of(screen)

    assert ["no code", "a code"] == re.findall('<td data-head="Answer">(.*?)</td>', main)
    assert [] == [code for code in CODES if code in main]


def test_users_are_marked_and_redeem(screen: str, viewer):
    assert 200 == call(screen, "mark-list", body__users_as_lines="U5").json()["status"]
    assert [1] == viewer("5").get("codes/eligibility").json()["eligible"]

    assert 200 == call(screen, "redeem", user_id="5").json()["status"]
    assert [0] == viewer("5").get("codes/eligibility").json()["eligible"]


def test_voters_of_a_poll_are_marked(screen: str, viewer):
    viewer("5").post("vote", params={"id": "rps"}, json={"value": 2}).raise_for_status()

    assert 200 == call(screen, "mark-poll", body__correct_as_json="2").json()["status"]

    assert [1] == viewer("5").get("codes/eligibility").json()["eligible"]


def test_codes_are_uploaded_and_deleted(screen: str, admin: Client):
    call(
        screen,
        "upload",
        body__names_as_list="Cape",
        body__indices_as_json_as_list="3",
        body__codes_as_lines_as_list="C1\nC2",
    )
    assert [0, 3] == admin.get("codes").json()["indices"]

    call(screen, "delete")
    assert [] == admin.get("codes").json()["indices"]
