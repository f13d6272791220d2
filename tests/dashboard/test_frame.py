"""The header, the navigation and the event stream of every page: what they show, and that they follow the service."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect

from emulator.dashboard.stream import GONE_EVENT
from support.pages import fetched, following
from support.service import LiveServer
from support.socket_client import SocketClient

FAULT = {"match": "POST /v1/e/rank", "effect": "status", "status": 503}


def frame_of(url: str) -> str:
    """Return the header and the navigation of a page."""
    (frame,) = re.findall(r'<div id="frame">(.*)</div>\s*<main', fetched(url).text, re.DOTALL)
    return str(frame)


def words_of(html: str) -> str:
    """Return the words of HTML."""
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def screen(live: LiveServer, name: str) -> str:
    return f"{live.url}/_emulator/ui/{name}"


def vote(live: LiveServer, value: int = 1) -> None:
    live.client("viewer", user="1", channel="777").post("vote", params={"id": "rps"}, json={"value": value})


def test_the_header_leads_to_other_namespaces_and_offers_to_undo_a_reset(live: LiveServer):
    # The header leads to the same screen of other namespaces
    httpx.post(f"{live.url}/_ns/blue").raise_for_status()

    assert '<a href="/_ns/blue/_emulator/ui/polls">blue</a>' in frame_of(screen(live, "polls"))
    assert '<a href="/_emulator/ui/polls">default</a>' in frame_of(f"{live.url}/_ns/blue/_emulator/ui/polls")

    # The header offers to undo a reset while that is possible
    assert "Undo the reset" not in frame_of(screen(live, "polls"))
    httpx.post(f"{live.url}/_emulator/reset?undo=60").raise_for_status()
    assert "Undo the reset" in frame_of(screen(live, "polls"))
    httpx.post(f"{live.url}/_emulator/undo").raise_for_status()
    assert "Undo the reset" not in frame_of(screen(live, "polls"))


def test_the_header_says_what_makes_the_service_unusual(live: LiveServer):
    assert not re.search("frozen|ahead|1 fault|Undo", words_of(frame_of(screen(live, "polls"))))
    httpx.post(f"{live.url}/_emulator/clock", json={"advance": 3_600_000}).raise_for_status()
    httpx.post(f"{live.url}/_emulator/faults", json=FAULT).raise_for_status()
    vote(live, 900)
    words = words_of(frame_of(screen(live, "polls")))

    assert re.search(r"\d\d:\d\d 1 h ahead 0 sockets 1 fault : status 503 400 POST /v1/e/vote", words)


def test_the_header_follows_the_service_in_the_stream_of_the_page(live: LiveServer):
    with following(screen(live, "stores")) as stream:
        stream.read()
        httpx.post(f"{live.url}/_emulator/clock", json={"freeze": True}).raise_for_status()
        _, after = stream.read()

    assert "frozen" in after
    assert '<hx-partial hx-target="#frame"' in after
    assert '<hx-partial hx-target="#main"' not in after, "the list of stores has not changed"


@pytest.mark.parametrize("path", ["ui/stores?store=channel_state&edit=1", "rig", "ui/polls?edit=1&id=a&client_id=b"])
def test_the_stream_of_a_page_that_does_not_follow_has_only_its_frame(live: LiveServer, path: str):
    (address,) = re.findall('hx-sse:connect="([^"]+)"', fetched(f"{live.url}/_emulator/{path}").text)
    parts = urlsplit(address.replace("&amp;", "&"))
    assert "follow=frame" in parts.query
    with following(live.url + parts.path.removesuffix("/events"), follow="frame") as stream:
        _, first = stream.read()

    assert '#frame"' in first
    assert '#main"' not in first


def test_a_stream_resumes_without_what_the_page_shows(live: LiveServer):
    with following(screen(live, "overview")) as stream:
        shown, _ = stream.read()
    with following(screen(live, "overview"), shown) as stream:
        live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
        identifier, data = stream.read()
        while "Busiest poll" not in data:  # the vote came between the content and the frame of the first event
            identifier, data = stream.read()

    assert shown != identifier


def test_a_stream_says_so_when_its_namespace_ends(live: LiveServer):
    address = f"{live.url}/_ns/short/_emulator/ui/overview/events"
    with httpx.stream("GET", address, timeout=60) as stream:
        chunks = stream.iter_raw()
        next(chunks)
        httpx.delete(f"{live.url}/_ns/short").raise_for_status()
        text = b"".join(chunks)

    assert text.endswith(GONE_EVENT)


@pytest.mark.long
def test_the_header_ticks_keys_lead_to_screens_and_a_switch_shows_the_commands(live: LiveServer, page: Page):
    # The header ticks while an edited text stays
    page.goto(screen(live, "stores?store=channel_state&edit=1"))
    page.fill("#text", '{"half": ')
    clock = page.locator("#time")
    expect(clock).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
    before = clock.text_content() or ""
    expect(clock).not_to_have_text(before)
    with SocketClient(live):
        expect(page.locator("header")).to_contain_text("1 socket")
    httpx.post(f"{live.url}/_emulator/clock", json={"advance": 3_600_000}).raise_for_status()
    expect(page.locator("header")).to_contain_text("1 h ahead")

    assert '{"half": ' == page.input_value("#text")

    # One switch shows the commands on all pages
    page.goto(screen(live, "faults"))
    expect(page.locator("#slow code")).to_be_hidden()
    page.get_by_label("commands").check()
    expect(page.locator("#slow code")).to_be_visible()
    vote(live)
    expect(page.locator("nav")).to_contain_text("Polls1")
    page.goto(screen(live, "namespaces"))
    page.click("#create-drawer > summary")

    expect(page.locator("#create code")).to_be_visible()

    # Keys lead to screens rows and what a screen can do
    page.goto(screen(live, "faults"))
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.locator("h1")).to_have_text("Polls")
    page.keyboard.press("j")
    expect(page.locator("main tbody a").first).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("define")
    page.keyboard.press("Enter")
    expect(page.locator("#define [name=client_id]")).to_be_focused()
