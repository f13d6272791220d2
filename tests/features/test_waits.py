"""Conditions of `GET /_emulator/wait`: what they compare, and what a response says (operations, Controlling)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from support.broadcasts import subscribed_game
from support.pusher_client import subscribed_page
from support.service import CHANNEL, Client, LiveServer
from support.socket_client import linked_game
from support.waits import LONG, ask

Wait = Callable[..., Any]


@pytest.fixture
def wait(live: LiveServer) -> Wait:
    """Ask whether a condition of channel 777 is met, and return the outcome. Waits only if a timeout is given."""
    return lambda *args, **parameters: ask(live, *args, **parameters).raise_for_status().json()


def test_a_condition_that_is_true_returns_at_once(wait: Wait, viewer):
    viewer().post("vote", json={"value": 3})

    outcome = wait("poll", timeout=LONG)

    assert (True, {"count": "at least 1"}, {"count": 1}) == (outcome["met"], outcome["wanted"], outcome["found"])


def test_a_link_a_question_and_a_purchase_are_waited_for(live: LiveServer, wait: Wait, viewer, broadcaster):
    mark = wait("link", timeout=20)["mark"]
    backend = live.client("backend", channel=CHANNEL)

    broadcaster.post("link/pin", json={}).raise_for_status()
    backend.post("curated_poll_edit", json={"id": "q1"}).raise_for_status()
    purchase = {"transactionReceipt": "", "transactionId": "t1", "sku": "hat"}
    viewer().post("bits/transactions", json=purchase).raise_for_status()

    for subject in ("link", "trivia", "purchase"):
        assert (True, {"count": 1}) == _met(wait(subject))
        assert (True, {"count": 1}) == _met(wait(subject, since=mark))
        assert not wait(subject, count="=0", timeout=20)["met"]


def _met(outcome: dict[str, Any]) -> tuple[bool, dict[str, int]]:
    return outcome["met"], outcome["found"]


def test_the_last_three_changes_say_what_happened(live: LiveServer, wait: Wait, viewer, broadcaster):
    now = live.freeze()
    viewer("1").post("vote?id=other", json={"value": 1})
    broadcaster.delete("vote?id=other")
    viewer("2").post("vote?id=lunch", json={"value": 2})
    viewer("3").post("vote?id=Lunch", json={"value": 3})

    changes = wait("poll", "lunch", count=2)["changes"]

    shown = [(each["id"], each["did"], each["user"], each["value"], each["at"]) for each in changes]
    assert [
        ("other", "cleared", "U777", None, now),
        ("lunch", "vote", "U2", 2, now),
        ("Lunch", "vote", "U3", 3, now),
    ] == shown


def test_a_ranking_is_compared_by_answer(wait: Wait, viewer):
    for user, answer in (("1", "blue"), ("2", "blue"), ("3", "red")):
        viewer(user).post("rank?id=colour", json={"key": answer})

    assert wait("rank", "colour", key="blue", score=2, count=3)["met"]
    assert not wait("rank", "colour", key="green")["met"]


def test_a_buffer_is_compared_by_its_newest_entry(wait: Wait, viewer):
    for stars in (4, 5):
        viewer().post("accumulate?id=stars", json={"stars": stars})

    outcome = wait("accumulate", "stars", count=2, latest='{"stars": 5.0}')

    assert (True, {"count": 2, "latest": {"stars": 5}}) == (outcome["met"], outcome["found"])
    assert not wait("accumulate", "stars", latest='{"stars": 4}')["met"]


@pytest.mark.parametrize(
    ("path", "equals", "is_met"),
    [
        ("/teams/0/name", '"red"', True),
        ("/teams/1", "", False),
        ("/a~1b", "true", True),
        ("/a~1b", "1", False),
        ("", '{"a/b": true, "teams": [{"name": "red"}]}', True),
    ],
)
def test_a_store_is_compared_at_a_json_pointer(wait: Wait, broadcaster, path: str, equals: str, is_met: bool):
    broadcaster.post("channel_state", json={"teams": [{"name": "red"}], "a/b": True})

    assert is_met is wait("store", "channel_state", path=path, equals=equals)["met"]


def test_a_broadcast_without_recipients_is_counted(wait: Wait, broadcaster, backend):
    broadcaster.post("broadcast", json={"event": "goal", "data": 1})
    broadcaster.post("broadcast", json={"event": "goal", "data": 1, "target": "whisper-U5"})
    backend.post("extension_broadcast", json={"event": "goal", "data": 1})

    outcome = wait("broadcast", "goal", count=2)

    assert ["channel", "whisper", "extension"] == [each["did"] for each in outcome["changes"]]
    assert outcome["met"]


def test_a_pin_is_issued_used_and_revoked(live: LiveServer, wait: Wait, broadcaster):
    assert [0, 0, 0] == [wait("pin", each)["found"]["count"] for each in ("issued", "used", "revoked")]

    with linked_game(live):
        broadcaster.delete("pin")

    outcomes = [wait("pin", each) for each in ("issued", "used", "revoked")]
    assert [1, 1, 1] == [each["found"]["count"] for each in outcomes]
    assert ["issued", "used", "revoked"] == [each["did"] for each in outcomes[0]["changes"]]
    assert {None} == {each["value"] for each in outcomes[0]["changes"]}


def test_sockets_are_counted_by_connection_and_by_topic(live: LiveServer, wait: Wait):
    def counts(*topics: str) -> list[int]:
        return [wait("sockets", each)["found"]["count"] for each in topics]

    with subscribed_page(live), subscribed_game(live, "viewer", user="5") as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        game.data("subscribe", "poll", {"topic_id": "lunch"})

        assert [2, 1, 1, 1] == counts("connected", "page", "state:channel", "poll:lunch")
        assert [1, 0, 0] == counts("event:goal", "poll:other", "state:extension")
        assert 0 == wait("sockets", "page", channel_id="888")["found"]["count"]


# Marks


def test_every_response_of_the_sandbox_carries_the_mark_of_the_latest_change(
    live: LiveServer, stranger: Client, viewer
):
    voted = viewer().post("vote", json={"value": 3})
    later = [
        stranger.get("/_emulator/clock"),
        stranger.get("/none"),
        stranger.options("/v1/e/vote"),
        viewer().get("vote"),
        viewer().post("vote", json={"value": 300}),
        viewer().delete("vote"),
        viewer().get("user_info"),
    ]

    mark = voted.headers["x-emulator-mark"]
    assert int(mark) > 1
    assert [mark] * len(later) == [each.headers["x-emulator-mark"] for each in later]


def test_since_a_mark_only_later_changes_count(wait: Wait, viewer, broadcaster):
    def mark_after(answer: httpx.Response) -> str:
        return answer.raise_for_status().headers["x-emulator-mark"]

    viewer("1").post("vote", json={"value": 1})
    mark = mark_after(viewer("2").post("vote", json={"value": 1}))
    assert {"count": 0, "sum": 0} == wait("poll", since=mark, count=1, sum=1)["found"]
    viewer("1").post("vote", json={"value": 5})
    assert {"count": 1, "value 5": 1} == wait("poll", since=mark, count=1, value="5=1")["found"]

    broadcaster.post("channel_state", json={"round": 1})
    mark = mark_after(broadcaster.post("broadcast", json={"event": "goal", "data": 1}))
    assert not wait("broadcast", "goal", since=mark)["met"]
    assert not wait("store", "channel_state", path="/round", equals="1", since=mark)["met"]
    broadcaster.post("channel_state", json={"round": 1})
    assert {"/round": 1, "writes": 1} == wait("store", "channel_state", path="/round", since=mark)["found"]


def test_a_mark_of_the_future_is_refused(live: LiveServer, wait: Wait):
    answer = ask(live, "poll", since=wait("poll")["mark"] + 1)

    assert (400, True) == (answer.status_code, "is after the latest mark" in answer.json()["info"])
