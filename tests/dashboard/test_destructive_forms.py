"""Every form that destroys something asks first: a click shows what is lost, and only the second one does it.

The tests of the screens send the forms.
"""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from support.faults import add_fault
from support.pages import main_of
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient, linked_game

OF_CHANNEL = f"client_id={CLIENT_ID}&channel_id={CHANNEL}"
LUNCH = f"ui/polls?id=lunch&{OF_CHANNEL}"
PAGES = [
    *("", "ui/pins", "ui/links", "ui/clock", "ui/faults", "ui/namespaces", "ui/sockets", "ui/sockets?socket=NUMBER"),
    *(LUNCH, f"ui/rankings?id=color&{OF_CHANNEL}", f"ui/codes?{OF_CHANNEL}", f"ui/trivia?id={CLIENT_ID}"),
]
DESTRUCTIVE = re.compile(r"(Delete|Remove|Expire|Restart|Close(?! now)|End|Jump|Set$|\+ \d+ d$)")
"""The labels of forms that destroy something. A move of up to an hour is not among them."""


def vote(live: LiveServer) -> None:
    live.client("viewer", user="1", channel=CHANNEL).post("vote?id=lunch", json={"value": 1}).raise_for_status()


def fill(live: LiveServer, admin: Client, broadcaster: Client, backend: Client) -> None:
    """Make something for each form to destroy."""
    vote(live)
    for answer in (
        broadcaster.post("rank?id=color", json={"key": "x"}),
        broadcaster.post("link/pin"),
        admin.put("codes", json={"codes": [["a"]], "names": ["hats"]}),
        backend.post("curated_poll_edit", json={"id": "q1"}),
        httpx.post(f"{live.url}/_ns/other"),
    ):
        answer.raise_for_status()
    with linked_game(live):
        pass
    add_fault(live, match="GET /v1/e/vote", effect="status", id="f1")


@pytest.mark.long
@pytest.mark.parametrize(("address", "label"), [(LUNCH, "Delete the poll"), ("", "Delete all data")])
def test_a_destructive_form_asks_before_it_acts(live: LiveServer, page: Page, address: str, label: str):
    vote(live)
    page.goto(f"{live.url}/_emulator/{address}")
    page.locator("main details:not(.asks)").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    asks, button = page.locator(".asks > summary", has_text=label), page.get_by_role("button", name=label, exact=True)

    expect(button).to_be_hidden()
    asks.click()
    expect(button).to_be_visible()
    asks.click()  # the reader thinks better of it
    expect(button).to_be_hidden()
    assert httpx.get(f"{live.url}/_emulator/contents/polls").json()["rows"]

    asks.click()
    button.click()
    expect(page.locator("#result")).not_to_be_empty()
    assert [] == httpx.get(f"{live.url}/_emulator/contents/polls").json()["rows"]


def test_each_destructive_form_asks(live: LiveServer, admin: Client, broadcaster: Client, backend: Client):
    fill(live, admin, broadcaster, backend)
    with SocketClient(live):
        number = httpx.get(f"{live.url}/_emulator/sockets").json()["sockets"][0]["number"]
        pages = "".join(main_of(f"{live.url}/_emulator/{path.replace('NUMBER', str(number))}") for path in PAGES)

    asking = re.findall(r'<details class="asks" id="([^"]+)-asks">', pages)
    forms = re.findall(r'<form id="([^"]+)" class="action"(?:(?!</form>).)*<button>([^<]*)<', pages, re.DOTALL)
    assert sorted(id for id, label in forms if DESTRUCTIVE.match(label)) == sorted(asking)
    assert len(asking) > len(PAGES)
