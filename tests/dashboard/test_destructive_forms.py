"""Every form that destroys something asks first: a click shows what is lost, and only the second one does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Page, expect

from support.faults import add_fault, faults_of
from support.pages import main_of
from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, LiveServer
from support.socket_client import SocketClient, linked_game

OF_CHANNEL = f"client_id={CLIENT_ID}&channel_id={CHANNEL}"


class Destruction(NamedTuple):
    """A form, what makes something for it to destroy, and whether that is still there."""

    page: str
    label: str
    make: Callable[[LiveServer], object]
    is_there: Callable[[LiveServer], object]


def of(path: str) -> Callable[[LiveServer], object]:
    """Return what reads a list of the control API."""
    return lambda live: httpx.get(f"{live.url}/_emulator/{path}").raise_for_status().json()["rows"]


def vote(live: LiveServer) -> None:
    live.client("viewer", user="1", channel=CHANNEL).post("vote?id=lunch", json={"value": 1}).raise_for_status()


def rank(live: LiveServer) -> None:
    live.client("viewer", user="1", channel=CHANNEL).post("rank?id=color", json={"key": "x"}).raise_for_status()


def codes(live: LiveServer) -> None:
    body = {"codes": [["a"]], "names": ["hats"]}
    live.client("admin", user="1", channel=CHANNEL).put("codes", json=body).raise_for_status()


def pin(live: LiveServer) -> None:
    live.client("broadcaster", user=CHANNEL, channel=CHANNEL).post("link/pin").raise_for_status()


def link(live: LiveServer) -> None:
    with linked_game(live):
        pass


def question(live: LiveServer) -> None:
    live.client("backend", user=None, channel=None).post("curated_poll_edit", json={"id": "q1"}).raise_for_status()


def questions(live: LiveServer) -> object:
    return live.client("backend", user=None, channel=None).get("curated_poll").json()["questions"]


def sockets(live: LiveServer) -> list[dict[str, object]]:
    return list(httpx.get(f"{live.url}/_emulator/sockets").json()["sockets"])


def fault(live: LiveServer) -> None:
    add_fault(live, match="GET /v1/e/vote", effect="status", id="f1")


def namespace(live: LiveServer) -> None:
    httpx.post(f"{live.url}/_ns/other").raise_for_status()


def namespaces(live: LiveServer) -> object:
    return httpx.get(f"{live.url}/_ns").json()["namespaces"]


POLLS = of("contents/polls")
DESTRUCTIONS = {
    "a poll": Destruction(f"ui/polls?id=lunch&{OF_CHANNEL}", "Delete the poll", vote, POLLS),
    "the votes of a poll": Destruction(
        f"ui/polls?id=lunch&{OF_CHANNEL}", "Restart", vote, lambda live: POLLS(live)[0]["count"]
    ),
    "a ranking": Destruction(f"ui/rankings?id=color&{OF_CHANNEL}", "Delete the ranking", rank, of("contents/rankings")),
    "all code sets": Destruction(f"ui/codes?{OF_CHANNEL}", "Delete all sets", codes, of("contents/codes")),
    "a PIN": Destruction("ui/pins", "Expire", pin, of("contents/pins")),
    "a link": Destruction("ui/links", "End", link, of("contents/links")),
    "a question": Destruction(f"ui/trivia?id={CLIENT_ID}", "Delete the question", question, questions),
    "a day": Destruction("ui/clock", "+ 1 d", rank, of("contents/rankings")),
    "eight days": Destruction("ui/clock", "+ 8 d", vote, POLLS),
    "the next expiry": Destruction("ui/clock", "Jump to the next", rank, of("contents/rankings")),
    "a fault": Destruction("ui/faults", "Remove f1", fault, faults_of),
    "all faults": Destruction("ui/faults", "Remove all", fault, faults_of),
    "a namespace": Destruction("ui/namespaces", "Delete other", namespace, namespaces),
    "everything": Destruction("", "Delete all data", vote, POLLS),
}


def ask(page: Page, label: str) -> None:
    page.locator(".asks > summary", has_text=label).click()


def confirm(page: Page, label: str) -> None:
    page.get_by_role("button", name=label, exact=True).click()


@pytest.mark.long
@pytest.mark.parametrize("name", DESTRUCTIONS)
def test_a_destructive_form_asks_before_it_acts(live: LiveServer, page: Page, name: str):
    address, label, make, is_there = DESTRUCTIONS[name]
    make(live)
    page.goto(f"{live.url}/_emulator/{address}")
    page.locator("main details:not(.asks)").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    button = page.get_by_role("button", name=label, exact=True)
    expect(button).to_be_hidden()
    ask(page, label)
    expect(button).to_be_visible()
    ask(page, label)  # the reader thinks better of it
    expect(button).to_be_hidden()
    assert is_there(live)

    ask(page, label)
    confirm(page, label)
    expect(page.locator("#result")).not_to_be_empty()
    assert not is_there(live)


@pytest.mark.long
@pytest.mark.parametrize(("page_of", "label"), [("ui/sockets", "Close all"), ("ui/sockets?socket={}", "Close")])
def test_closing_sockets_asks_before_it_acts(live: LiveServer, page: Page, page_of: str, label: str):
    with SocketClient(live):
        page.goto(f"{live.url}/_emulator/{page_of.format(sockets(live)[0]['number'])}")
        expect(page.get_by_role("button", name=label, exact=True)).to_be_hidden()
        assert sockets(live)
        page.locator("[id^=close][id$=-asks] > summary").first.click()
        confirm(page, label)

        expect(page.locator("#result")).not_to_be_empty()
        wait_until(lambda: not sockets(live))  # the other side closes too


DESTRUCTIVE = re.compile(r"(Delete|Remove|Expire|Restart|Close(?! now)|End|Jump|Set$|\+ \d+ d$)")
"""The labels of forms that destroy something. A move of up to an hour is not among them."""


def test_each_destructive_form_asks(live: LiveServer):
    for make in (vote, rank, codes, pin, link, question, fault, namespace):
        make(live)
    with SocketClient(live):
        paths = {each.page for each in DESTRUCTIONS.values()}
        paths |= {"ui/sockets", f"ui/sockets?socket={sockets(live)[0]['number']}"}
        pages = "".join(main_of(f"{live.url}/_emulator/{path}") for path in sorted(paths))

    asking = re.findall(r'<details class="asks" id="([^"]+)-asks">', pages)
    forms = re.findall(r'<form id="([^"]+)" class="action"(?:(?!</form>).)*<button>([^<]*)<', pages, re.DOTALL)
    assert sorted(id for id, label in forms if DESTRUCTIVE.match(label)) == sorted(asking)
