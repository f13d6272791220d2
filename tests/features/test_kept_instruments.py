"""Loaded data leave the journal, the counts and the stalls of a test as they are. A reset clears them."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from emulator.core.clock import DAY
from emulator.core.settings import Limits, Settings
from support.journal import entries_of
from support.seeds import apply
from support.service import CHANNEL, Client, LiveServer, RunningService, live_server, still_clock
from support.socket_client import linked_game
from support.verdicts import rules, verdict
from support.waits import LONG, ask, waiting

Load = Callable[[LiveServer], object]


def seed(live: LiveServer) -> None:
    apply(live, polls=[{"id": "seeded", "votes": {"U1": 3}}])


def snapshot(live: LiveServer) -> None:
    """Load the data that the service has."""
    with Client(base_url=live.url) as client:
        saved = client.get("/_emulator/snapshot?keys=true").raise_for_status().content
        client.put("/_emulator/snapshot", content=saved).raise_for_status()


def undo(live: LiveServer) -> None:
    with Client(base_url=live.url) as client:
        client.post("/_emulator/undo").raise_for_status()


LOADS = [seed, snapshot, undo]


@pytest.fixture
def undoable(live: LiveServer) -> LiveServer:
    """A service whose latest reset can be undone."""
    httpx.post(f"{live.url}/_emulator/reset", params={"undo": 60}).raise_for_status()
    return live


def mark_of(live: RunningService) -> int:
    return int(ask(live, "poll", "lunch").json()["mark"])


@pytest.mark.parametrize("load", LOADS)
def test_journal_verdicts_and_met_conditions_stay_when_data_is_loaded(undoable: LiveServer, load: Load, viewer):
    mark = mark_of(undoable)
    viewer().post("vote?id=lunch", json={"value": 1}).raise_for_status()

    load(undoable)

    assert 1 == len(entries_of(undoable, path="/v1/e/vote"))
    assert {"refuse exp": 1} == rules(undoable)
    outcome = ask(undoable, "poll", "lunch", count=1, since=mark).raise_for_status().json()
    assert (True, 1) == (outcome["met"], outcome["found"]["count"])


@pytest.mark.parametrize("load", LOADS)
def test_a_stall_lasts_when_data_is_loaded(undoable: LiveServer, load: Load):
    with linked_game(undoable):
        httpx.post(f"{undoable.url}/_emulator/sockets/stall", json={"all": True}).raise_for_status()
        load(undoable)
        stalled = [each["stalled"] for each in httpx.get(f"{undoable.url}/_emulator/sockets").json()["sockets"]]
        undoable.reset()
        released = [each["stalled"] for each in httpx.get(f"{undoable.url}/_emulator/sockets").json()["sockets"]]

    assert ([True], [False]) == (stalled, released)


@pytest.mark.parametrize("load", LOADS)
def test_used_up_rates_stay_used_up_when_data_is_loaded(load: Load):
    with live_server(Settings(limits=Limits(caller_rate=1)), clock=still_clock()) as live:
        httpx.post(f"{live.url}/_emulator/reset", params={"undo": 60}).raise_for_status()
        client = live.client("viewer", user="1", channel=CHANNEL)
        before = [client.get("vote").status_code for _ in range(6)]
        load(live)
        after = client.get("vote").status_code
        live.reset()

        assert ([*[200] * 5, 429], 429, 200) == (before, after, client.get("vote").status_code)


def test_a_store_that_had_lapsed_is_still_missed_unless_a_seed_has_it(known: LiveServer):
    admin = known.client("admin", user="1", channel=CHANNEL, exp=10**10)
    for scope in ("extension", "channel"):
        admin.post(f"{scope}_state", json={"round": 1}).raise_for_status()
    known.freeze()
    known.advance(2 * DAY)

    apply(known, stores=[{"store": "channel_state", "data": {"round": 2}}])

    assert ["differ; rule=lifetime", ""] == [
        verdict(admin.get(f"{scope}_state").raise_for_status()) for scope in ("extension", "channel")
    ]


def test_after_a_reset_an_earlier_mark_is_refused(live: LiveServer, viewer):
    before = mark_of(live)
    viewer().post("vote?id=lunch", json={"value": 1}).raise_for_status()
    voted, number = mark_of(live), entries_of(live)[-1]["number"]
    with waiting() as threads:
        later = threads.begin(live, "poll", "lunch", count=2, since=before, timeout=LONG)

        live.reset()

        answers = [later.result(), *(ask(live, "poll", "lunch", count=1, since=mark) for mark in (before, voted))]
    answers.append(ask(live, "journal", "POST /v1/e/vote", count=1, since=number - 1))
    assert [400, 400, 200, 400] == [answer.status_code for answer in answers]
    assert 200 == ask(live, "broadcast", "hello", count=1, since=before).status_code
