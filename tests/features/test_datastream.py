"""The datastream: games receive the JSON that pages of their channel post, in order."""

from __future__ import annotations

import json

import pytest

from emulator.core.environment import STRICT
from emulator.core.extensions import Extension
from emulator.core.settings import Limits, Settings
from support.service import CHANNEL, CLIENT_ID, SECRET, LiveServer, live_server, real_seconds
from support.socket_client import SocketClient, linked_game


@pytest.mark.parametrize("event", [{"click": 1}, [1, 2], 7, "text", None])
def test_games_receive_a_posted_event_unchanged(live: LiveServer, game: SocketClient, viewer, event: object):
    live.freeze()
    game.data("subscribe", "datastream", {"topic_id": ""})

    answer = viewer().post("datastream", content=json.dumps(event))

    assert (200, {}) == (answer.status_code, answer.json())
    update = game.update()
    assert "datastream" == update["meta"]["target"]
    assert {"events": [{"event": event, "timestamp": live.now() // 1000}]} == update["data"]


def test_events_arrive_in_order_until_the_game_unsubscribes(game: SocketClient, viewer):
    game.data("subscribe", "datastream", {"topic_id": ""})
    client = viewer()

    for number in range(20):
        client.post("datastream", json=number)

    assert list(range(20)) == [game.update()["data"]["events"][0]["event"] for _ in range(20)]
    game.data("unsubscribe", "datastream", {"topic_id": ""})
    client.post("datastream", json={})
    assert game.no_update()


def test_games_of_other_channels_and_extensions_receive_nothing(live: LiveServer, viewer):
    with linked_game(live, "888") as elsewhere, linked_game(live, client_id="other-extension") as other:
        for each in (elsewhere, other):
            each.data("subscribe", "datastream", {"topic_id": ""})

        viewer().post("datastream", json={})

        assert [True, True] == [each.no_update() for each in (elsewhere, other)]


@pytest.mark.parametrize("event", ["x" * 4_095, "é" * 2_048, {"a": "x" * 4_089}])
def test_an_event_has_at_most_4096_bytes_of_compact_json(game: SocketClient, viewer, event: object):
    game.data("subscribe", "datastream", {"topic_id": ""})

    answer = viewer().post("datastream", content=json.dumps(event))

    assert (400, True) == (answer.status_code, answer.json()["info"].startswith("event: "))
    assert game.no_update()


@pytest.mark.parametrize("event", ["x" * 4_094, "é" * 2_047, ["x" * 4_092]])
def test_an_event_of_4096_bytes_is_delivered_however_it_is_written(game: SocketClient, viewer, event: object):
    game.data("subscribe", "datastream", {"topic_id": ""})

    viewer().post("datastream", content=json.dumps(event, indent=20)).raise_for_status()

    assert event == game.update()["data"]["events"][0]["event"]


def statuses(live: LiveServer, number: int, role: str = "viewer", user: str = "1") -> list[int]:
    """Post as many events of 4 KiB, and return the statuses."""
    caller = live.client(role, user=user, channel=CHANNEL, exp=real_seconds() + 600)
    return [caller.post("datastream", json="x" * 4_090).status_code for _ in range(number)]


def test_a_caller_has_a_number_of_bytes_a_second():
    settings = Settings(STRICT, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}, limits=Limits(caller_rate=20))
    with live_server(settings) as live:
        live.freeze()  # a clock that stands still ends no limit of real time
        first = statuses(live, 10)
        caller = live.client("viewer", user="1", channel=CHANNEL, exp=real_seconds() + 600)
        refused = caller.post("datastream", json="x" * 4_090)

        assert [200] * 6 == first[:6]
        assert 429 in first
        assert (429, "Too many requests") == (refused.status_code, refused.json()["reason"])
        assert "more than 5120 bytes a second of datastream events from this caller" in refused.json()["info"]
        assert int(refused.headers["Retry-After"]) >= 1
        assert [200] * 5 == statuses(live, 5, user="2")
        assert [200] * 40 == [*statuses(live, 20, "admin"), *statuses(live, 20, "backend")]
        assert 200 == caller.get("vote").status_code


def test_the_largest_event_is_accepted_at_the_lowest_rate():
    settings = Settings(STRICT, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}, limits=Limits(caller_rate=1))
    with live_server(settings) as live:
        assert [200, 429] == statuses(live, 2)


def test_the_sandbox_accepts_more_and_says_what_production_would_do(live: LiveServer):
    caller = live.client("viewer", user="1", channel=CHANNEL, exp=real_seconds() + 600)
    answers = [caller.post("datastream", json="x" * 4_090) for _ in range(60)]

    assert {200} == {each.status_code for each in answers}
    assert "refuse; rule=caller-rate" in {each.headers.get("X-Emulator-Production") for each in answers}
