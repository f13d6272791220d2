"""The screen of reward codes."""

from __future__ import annotations

import re

import httpx
import pytest

from dashboard.html_pages import forms_of
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


def test_the_screen_lists_sets_redemptions_and_the_codes_of_a_user_masked(screen: str, admin: Client, viewer):
    admin.post("codes/mark_from_list", json={"users": ["5"], "prizes": [0], "prize_limits": [1]}).raise_for_status()
    for _ in range(2):
        viewer("5").post("codes/redeem", json={"prize": 0}).raise_for_status()
    main, of_user = main_of(screen), main_of(f"{screen}?user=5")

    assert "&lt;b&gt;Hat&lt;/b&gt;" in main
    for head, number in (("Handed out", 1), ("Left", 2)):
        assert f'<td data-head="{head}" class="number">{number}</td>' in main
    assert ["no code", "a code"] == re.findall('<td data-head="Answer">(.*?)</td>', main)
    assert "H•••••••" in of_user
    assert '<td data-head="May redeem" class="number">0</td>' in of_user
    assert [] == [code for code in CODES if code in main + of_user]


def test_users_and_voters_of_a_poll_are_marked_and_redeem(screen: str, viewer):
    assert 200 == call(screen, "mark-list", body__users="U5").json()["status"]
    assert [1] == viewer("5").get("codes/eligibility").json()["eligible"]

    assert 200 == call(screen, "redeem", user_id="5").json()["status"]
    assert [0] == viewer("5").get("codes/eligibility").json()["eligible"]

    viewer("6").post("vote", params={"id": "rps"}, json={"value": 2}).raise_for_status()
    assert 200 == call(screen, "mark-poll", body__correct="2").json()["status"]
    assert [1] == viewer("6").get("codes/eligibility").json()["eligible"]


def test_codes_are_uploaded_and_deleted(screen: str, admin: Client):
    cape = {"names": "Cape", "indices": "3", "codes": "C1\nC2"}
    call(screen, "upload", **{f"body__{name}": value for name, value in cape.items()})
    assert [0, 3] == admin.get("codes").json()["indices"]

    call(screen, "delete")
    assert [] == admin.get("codes").json()["indices"]
