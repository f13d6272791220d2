"""Faults of broadcasts: lost, doubled, late and in another order, for games and pages alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from emulator.realtime import faulty_messages
from support.broadcasts import Audience
from support.faults import add_fault, hits_of, remove_faults
from support.journal import entries_of, entry_of
from support.process import wait_until
from support.service import Client, LiveServer, RunningService
from support.socket_client import SocketClient

Send = Callable[..., object]


@pytest.fixture
def audience(live: LiveServer) -> Iterator[Audience]:
    """A page and a game of the extension in channel 777."""
    with ExitStack() as stack:
        yield Audience(stack, live)


@pytest.fixture
def send(broadcaster: Client) -> Send:
    """Broadcast events by their names."""

    def send(*events: str) -> None:
        for event in events:
            broadcaster.post("broadcast", json={"event": event, "data": {"of": event}}).raise_for_status()

    return send


def next_of(audience: Audience) -> str:
    """Wait for the next event, which the game and the page receive, and return its name."""
    name = str(audience.game.update()["data"]["event"])
    (broadcast,) = wait_until(audience.page.broadcasts)
    assert broadcast.event.rpartition(":")[2] == name
    return name


def test_a_lost_broadcast_reaches_no_game_and_no_page(live: LiveServer, audience: Audience, send: Send):
    add_fault(live, "BROADCAST game_start", "lose")

    send("tick", "game_start", "tock")

    assert ["tick", "tock"] == audience.events()
    assert [1] == hits_of(live), "one hit, whatever the number of recipients"


def test_a_doubled_broadcast_arrives_twice_also_over_the_socket(live: LiveServer, audience: Audience, send: Send, game):
    add_fault(live, "BROADCAST *", "double", times=2)

    send("one")
    game.data("broadcast", data={"topic": "two", "data": 1})
    send("three")

    assert ["one", "one", "two", "two", "three"] == audience.events()


def test_a_reordered_broadcast_arrives_after_the_next_one(live: LiveServer, audience: Audience, send: Send):
    add_fault(live, "BROADCAST score", "reorder")

    send("score", "other")
    assert ["other"] == audience.events()
    send("score")

    assert ["score", "score"] == audience.events()
    assert [1] == hits_of(live), "the one that passes a held one is not held"
    assert [False, True] == [bool(each["fault"]) for each in _deliveries(live, "event:score")]


@pytest.mark.slow
def test_a_reordered_broadcast_that_no_other_follows_arrives_after_one_second(
    live: LiveServer, audience: Audience, send: Send
):
    add_fault(live, "BROADCAST score", "reorder")

    send("score")

    assert 1 == faulty_messages.REORDER_WAIT
    assert "score" == next_of(audience)


@pytest.mark.parametrize("ends", ["removed", "replaced"])
def test_a_delayed_broadcast_arrives_later_than_its_response(live: LiveServer, audience: Audience, send: Send, ends):
    add_fault(live, "BROADCAST late", "delay", id="slow", delay=60_000)

    send("late", "early")
    assert ["early"] == audience.events()
    if ends == "removed":
        remove_faults(live)
    else:
        add_fault(live, "BROADCAST other", "lose", id="slow")

    assert "late" == next_of(audience)


@pytest.mark.parametrize("effect", [{"effect": "reorder"}, {"effect": "delay", "delay": 60_000}])
def test_a_reset_forgets_the_broadcasts_that_a_fault_holds(live: LiveServer, send: Send, broadcaster: Client, effect):
    add_fault(live, "BROADCAST old", **effect)
    send("old")

    live.reset()
    send("new")

    assert ["event:new"] == [entry["endpoint"] for entry in entries_of(live, kind="delivery")]


def test_a_whisper_to_many_users_is_one_hit(live: LiveServer, audience: Audience, game: SocketClient):
    add_fault(live, "BROADCAST news", "lose", times=1)
    whisper = {"topic": "news", "data": 1, "ids": ["5551", "5552", "5553"]}

    game.data("broadcast", data=whisper)

    assert audience.game.no_update()
    assert [1] == hits_of(live)
    game.data("broadcast", data=whisper)
    assert "whisper" == audience.game.update()["data"]["scope"]


def test_the_response_to_the_sender_and_the_journal_name_the_fault(live: LiveServer, broadcaster: Client):
    add_fault(live, "POST /v1/e/broadcast", "delay", delay=1)
    add_fault(live, "BROADCAST news", "lose")

    answer = broadcaster.post("broadcast", json={"event": "news", "data": 1}).raise_for_status()

    assert "f1; effect=delay, f2; effect=lose" == answer.headers["x-emulator-fault"]
    assert "f1" == entry_of(live, answer)["fault"]
    assert [("f2", 0)] == [(entry["fault"], entry["delivered"]) for entry in _deliveries(live, "event:news")]


def test_a_fault_of_a_namespace_spares_the_broadcasts_of_others(live: LiveServer, audience: Audience, send: Send):
    red = RunningService(f"{live.url}/_ns/faulty-broadcasts")
    red.reset()
    add_fault(red, "BROADCAST *", "lose")

    send("news")

    assert ["news"] == audience.events()
    assert [0] == hits_of(red)


def _deliveries(live: LiveServer, topic: str) -> list[dict[str, object]]:
    return [entry for entry in entries_of(live, kind="delivery") if entry["endpoint"] == topic]
