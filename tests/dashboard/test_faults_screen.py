"""The screen of faults, and where else the dashboard shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from dashboard.html_pages import forms_of
from emulator.core.settings import Settings
from engines.redis_server import RedisServer
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


def test_the_screen_lists_faults_with_conditions_hits_and_what_is_left(live: LiveServer, viewer, screen: str):
    live.set(2_000_000_000_000)
    add(live, **VOTE, retry_after=1, times=3, role="viewer", user="5551")
    add(live, match="BROADCAST *", effect="double", share=0.25, lasts=60_000)
    viewer().post("vote", json={"value": 1})
    main = main_of(screen)

    for shown in ("POST /v1/e/vote", "role <bdi>viewer</bdi>", "status 503", "2 of 3", "25%", "extcli fault rm f2"):
        assert shown in main


def test_a_fault_that_is_over_is_marked(live: LiveServer, viewer, screen: str):
    add(live, **VOTE, times=1)
    add(live, **VOTE, lasts=60_000)
    assert "(over)" not in main_of(screen)
    viewer().post("vote", json={"value": 1})
    assert "f1 (over)" in main_of(screen)
    assert "f2 (over)" not in main_of(screen)
    httpx.post(f"{live.url}/_emulator/clock", json={"advance": 60_000}).raise_for_status()
    assert "f2 (over)" in main_of(screen)


USUAL = {
    "refuse-votes": {"match": "POST /v1/e/vote", "effect": "status", "status": 503, "retry_after": 1, "times": 3},
    "slow": {"match": "* /v1/e/*", "effect": "delay", "delay": 500},
    "lose": {"match": "BROADCAST *", "effect": "lose", "times": 1},
    "double": {"match": "BROADCAST *", "effect": "double", "times": 1},
    "restart": {"match": "SOCKET *", "effect": "close", "code": 1012, "lasts": 10_000},
}
"""The faults that one click adds, by their forms."""


def test_a_usual_fault_is_added_by_one_click_and_any_other_by_the_form(live: LiveServer, screen: str):
    for form in USUAL:
        forms_of(screen)[form].send().raise_for_status()
    given = {
        "match": "* /v1/e/*", "effect": "delay", "delay": "20", "delay_max": "50", "role": "viewer", "channel": "777",
        "user": "7", "client_id": "x", "share": "0.5", "seed": "7", "lasts": "1000", "id": "mine",
    }  # fmt: skip
    forms_of(screen)["add"].send(**given).raise_for_status()

    numbers = {"delay": 20, "delay_max": 50, "share": 0.5, "seed": 7, "lasts": 1_000}
    for expected, fault in zip([*USUAL.values(), given | numbers], faults(live), strict=True):
        assert expected.items() <= fault.items()


def test_a_wrong_fault_is_refused_with_the_field_and_one_is_removed_or_all(live: LiveServer, screen: str):
    # A wrong fault is refused with the field
    answer = forms_of(screen)["add"].send(match="POST /v1/e/vote", effect="status", status="200")

    assert (400, True) == (answer.status_code, answer.json()["info"].startswith("status: "))
    assert [] == faults(live)

    # One fault is removed or all
    for _ in range(3):
        add(live, **VOTE)

    forms_of(screen)["remove-f2"].send().raise_for_status()
    assert ["f1", "f3"] == [each["id"] for each in faults(live)]
    assert {"removed": 2} == forms_of(screen)["clear"].send().raise_for_status().json()


def test_a_request_that_a_fault_responded_to_is_marked_and_explained(live: LiveServer, viewer, stranger: Client):
    add(live, **VOTE, times=1)
    viewer().post("vote", params={"id": "marked"}, json={"value": 1})
    requests = f"{live.url}/_emulator/ui/requests"

    (row,) = [row for row in main_of(requests).split("<tr ") if "id=marked" in row]
    assert "fault f1" in row
    number = row.partition('data-entry="')[2].partition('"')[0]
    assert "Hits so far: 1." in main_of(f"{requests}?entry={number}")

    stranger.delete("/_emulator/faults").raise_for_status()
    assert "Hits so far" not in main_of(f"{requests}?entry={number}")


@pytest.mark.slow
def test_a_service_on_redis_says_why_there_are_no_faults(tmp_path: Path):
    with RedisServer(tmp_path) as redis, live_server(Settings(data=redis.url())) as live:
        main = main_of(f"{live.url}/_emulator/ui/faults")

    assert "faults need a service with one process" in main
    assert "<form" not in main
