"""The screen of faults, and where else the dashboard shows them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from emulator.config.settings import Settings
from support.forms import forms_of
from support.pages import main_of
from support.service import Client, LiveServer, live_server

VOTE = {"match": "POST /v1/e/vote", "effect": "status", "status": 503}


@pytest.fixture
def screen(live: LiveServer) -> str:
    return f"{live.url}/_emulator/ui/faults"


def add(live: LiveServer, **members: Any) -> None:
    httpx.post(f"{live.url}/_emulator/faults", json=members).raise_for_status()


def faults(live: LiveServer) -> list[dict[str, Any]]:
    return list(httpx.get(f"{live.url}/_emulator/faults").json()["faults"])


def test_the_screen_says_that_there_are_none(screen: str):
    assert "No faults: the service works normally." in main_of(screen)


def test_the_screen_lists_faults_with_conditions_hits_and_what_is_left(live: LiveServer, viewer, screen: str):
    live.set(2_000_000_000_000)
    add(live, **VOTE, retry_after=1, times=3, role="viewer", user="5551")
    add(live, match="BROADCAST <b>x</b>", effect="double", share=0.25, lasts=60_000)
    viewer().post("vote", json={"value": 1})
    main = main_of(screen)

    assert "<bdi>POST /v1/e/vote</bdi>" in main
    assert "role <bdi>viewer</bdi>, user <bdi>5551</bdi>" in main
    assert "status 503, retry after 1 s" in main
    assert '<td data-head="Hits" class="number">1</td>' in main
    assert "2 of 3" in main
    assert "BROADCAST &lt;b&gt;x&lt;/b&gt;" in main
    assert "25 % of them, until 2033-05-18 03:34:20.000 UTC" in main
    assert "extcli fault rm f2" in main


@pytest.mark.parametrize("move", [0, 60_000])
def test_a_fault_that_is_over_is_marked(live: LiveServer, viewer, screen: str, move: int):
    add(live, **VOTE, **({"lasts": 60_000} if move else {"times": 1}))
    assert "(over)" not in main_of(screen)

    if move:
        httpx.post(f"{live.url}/_emulator/clock", json={"advance": move}).raise_for_status()
    else:
        viewer().post("vote", json={"value": 1})

    assert "f1 (over)" in main_of(screen)


@pytest.mark.parametrize(
    ("form", "members"),
    [
        ("refuse-votes", {"match": "POST /v1/e/vote", "effect": "status", "status": 503, "retry_after": 1, "times": 3}),
        ("slow", {"match": "* /v1/e/*", "effect": "delay", "delay": 500}),
        ("lose", {"match": "BROADCAST *", "effect": "lose", "times": 1}),
        ("double", {"match": "BROADCAST *", "effect": "double", "times": 1}),
        ("restart", {"match": "SOCKET *", "effect": "close", "code": 1012, "lasts": 10_000}),
    ],
)
def test_a_usual_fault_is_added_by_one_click(live: LiveServer, screen: str, form: str, members: dict[str, Any]):
    forms_of(screen)[form].send().raise_for_status()

    (fault,) = faults(live)
    assert members.items() <= fault.items()


def test_each_usual_fault_has_the_command_that_adds_it(live: LiveServer, screen: str):
    main = main_of(screen)

    assert "extcli fault add --match &#39;POST /v1/e/vote&#39; --status 503 --retry-after 1 --times 3" in main
    assert f"extcli fault add --match &#39;SOCKET *&#39; --close 1012 --for 10s --url {live.url}" in main


def test_any_fault_is_added_by_the_form(live: LiveServer, screen: str):
    form = forms_of(screen)["add"]
    given = {
        "match": "* /v1/e/*", "effect": "delay", "delay": "20", "delay_max": "50", "role": "viewer", "channel": "777",
        "user": "7", "client_id": "x", "share": "0.5", "seed": "7", "lasts": "1000", "id": "mine",
    }  # fmt: skip
    form.send(**given).raise_for_status()

    (fault,) = faults(live)
    numbers = {"delay": 20, "delay_max": 50, "share": 0.5, "seed": 7, "lasts": 1_000}
    assert (given | numbers).items() <= fault.items()


def test_a_wrong_fault_is_refused_with_the_field(live: LiveServer, screen: str):
    answer = forms_of(screen)["add"].send(match="POST /v1/e/vote", effect="status", status="200")

    assert (400, "status: 200 is not within 400 to 599") == (answer.status_code, answer.json()["info"])
    assert [] == faults(live)


def test_one_fault_is_removed_or_all(live: LiveServer, screen: str):
    for _ in range(3):
        add(live, **VOTE)

    forms_of(screen)["remove-f2"].send().raise_for_status()
    assert ["f1", "f3"] == [each["id"] for each in faults(live)]
    assert {"removed": 2} == forms_of(screen)["clear"].send().raise_for_status().json()


@pytest.mark.long
def test_an_open_screen_counts_hits_and_adds_with_the_keyboard(live: LiveServer, viewer, screen: str, browser: Browser):
    page = browser.new_page()
    page.goto(screen)
    page.locator("#refuse-votes .submit > button").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_have_text("Added: f1")
    expect(page.locator("tbody")).to_contain_text("3 of 3")

    viewer().post("vote", json={"value": 1})

    expect(page.locator("tbody")).to_contain_text("2 of 3")
    page.locator("#remove-f1-asks > summary").click()
    page.locator("#remove-f1 .submit > button").click()
    expect(page.locator("main")).to_contain_text("No faults: the service works normally.")
    page.close()


def test_a_request_that_a_fault_responded_to_is_marked_and_explained(live: LiveServer, viewer, stranger: Client):
    add(live, **VOTE, times=1)
    viewer().post("vote", params={"id": "marked"}, json={"value": 1})
    requests = f"{live.url}/_emulator/ui/requests"

    (row,) = [row for row in main_of(requests).split("<tr ") if "id=marked" in row]
    assert '<span class="badge">fault f1</span>' in row
    number = row.partition('data-entry="')[2].partition('"')[0]
    entry = f"{requests}?entry={number}"
    assert "A fault acted on this request" in main_of(entry)
    assert "<bdi>POST /v1/e/vote</bdi>: status 503. Hits so far: 1." in main_of(entry)
    assert "extcli fault rm f1" in main_of(entry)

    stranger.delete("/_emulator/faults").raise_for_status()
    assert "It has been removed since." in main_of(entry)


def test_a_request_that_was_only_delayed_is_also_marked(live: LiveServer, viewer):
    add(live, match="GET /v1/e/vote", effect="delay", delay=1)
    assert 200 == viewer().get("vote", params={"id": "late"}).status_code

    (row,) = [row for row in main_of(f"{live.url}/_emulator/ui/requests").split("<tr ") if "id=late" in row]
    assert "fault f1" in row


def test_several_processes_say_why_there_are_no_faults():
    with live_server(Settings(has_peers=True)) as live:
        main = main_of(f"{live.url}/_emulator/ui/faults")

    assert "faults act in one process" in main
    assert "<form" not in main


def test_a_namespace_shows_its_own_faults(live: LiveServer):
    httpx.post(f"{live.url}/_ns/blue/_emulator/faults", json=VOTE | {"id": "of-blue"}).raise_for_status()

    assert "of-blue" not in main_of(f"{live.url}/_emulator/ui/faults")
    assert "extcli fault rm of-blue --url" in main_of(f"{live.url}/_ns/blue/_emulator/ui/faults")
