"""Polls over the socket, and their entries in the channel state (Poll; rulings A4, P4, X5, X6)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.core.clock import SECOND
from support.authentication import authenticated_game
from support.socket_client import SocketClient, linked_game
from support.socket_polls import OPTIONS, configure, create, poll, statuses, subscribe, vote


def state(game: SocketClient) -> dict[str, Any]:
    return dict(game.data("get", "state", {"state_id": "channel"})["state"])


def test_a_new_poll_has_its_definition_and_zeros(game):
    assert {"ok": True} == create(game, user_data={"mystery": True})

    view = {"poll_id": "color", "prompt": "Which?", "options": OPTIONS, "status": "active"}
    assert {
        "topic_id": "color",
        "poll": {**view, "user_data": {"mystery": True}},
        "results": [0, 0, 0],
        "mean": 0,
        "sum": 0,
        "count": 0,
        "stddev": 0,
    } == poll(game)


def test_votes_over_rest_count_per_option_and_in_the_statistics(live, game):
    create(game)
    for user, value in enumerate([0, 0, 2, 50, -99]):
        vote(live, str(user), value)

    standing = poll(game)

    assert [2, 0, 1] == standing["results"]
    assert (5, -47, -9.4) == (standing["count"], standing["sum"], standing["mean"])


def test_a_poll_without_a_definition_has_64_results(live, game):
    vote(live, "1", 63)

    standing = poll(game)

    view = {"poll_id": "color", "prompt": "", "options": [], "status": "active", "user_data": None}
    assert view == standing["poll"]
    assert [0] * 63 + [1] == standing["results"]


def test_creating_an_existing_poll_replaces_its_definition_and_keeps_its_votes(live, game):
    create(game)
    vote(live, "1", 1)

    create(game, prompt="Anew?", options=["a", "b"])

    standing = poll(game)
    assert ("Anew?", [0, 1], 1) == (standing["poll"]["prompt"], standing["results"], standing["count"])


def test_a_disabled_poll_refuses_votes_and_stays_active(live, game):
    create(game)
    configure(game, disabled=True)
    seen = vote(live, "1", 1), poll(game)["poll"]["status"]

    configure(game, disabled=False)

    assert (400, "active", 200) == (*seen, vote(live, "1", 1))


def test_a_stopped_poll_is_expired_and_refuses_votes_until_deleted(live, game):
    create(game)

    configure(game, endsAt=-1)

    assert ("expired", 400) == (poll(game)["poll"]["status"], vote(live, "1", 1))
    game.data("delete", "poll", {"poll_id": "color"})
    assert 200 == vote(live, "1", 1)


@pytest.mark.parametrize(
    "body",
    [
        {"poll_id": "a b"},
        {"poll_id": "p", "options": ["é" * 65]},
        {"poll_id": "p", "user_data": "x" * 1_024},
        {"poll_id": "p", "config": {"startsAt": 2, "endsAt": 1}},
    ],
)
def test_an_invalid_poll_gets_400_and_leaves_nothing_behind(game, body):
    error = game.error("create", "poll", body)

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {} == state(game)
    assert 404 == game.error("get", "poll", {"poll_id": "p"})["status"]


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({}, ("inside", ["a"], 1)),
        ({"prompt": "", "options": OPTIONS, "user_data": None}, ("", OPTIONS, None)),
    ],
)
def test_a_new_poll_takes_fields_from_its_config_unless_they_are_given_outside_it(game, beside, expected):
    config = {"prompt": "inside", "options": ["a"], "userData": 1}

    game.data("create", "poll", {"poll_id": "color", "config": config, **beside})

    found = poll(game)["poll"]
    assert expected == (found["prompt"], found["options"], found["user_data"])


def test_an_empty_list_of_options_removes_those_of_the_poll(game):
    create(game)

    configure(game, options=[])

    assert [] == poll(game)["poll"]["options"]


def test_channels_have_separate_polls(live, game):
    create(game)
    with linked_game(live, "888") as elsewhere:
        subscribe(elsewhere)
        subscribe(elsewhere, "*")

        vote(live, "1", 1)
        live.advance(SECOND)

        assert 404 == elsewhere.error("get", "poll", {"poll_id": "color"})["status"]
        assert [] == statuses(elsewhere, 0)


def test_a_global_poll_is_shared_by_all_channels(live, game):
    with authenticated_game(live, "admin") as admin:
        create(admin, "global-x")
    with linked_game(live, "888") as elsewhere:
        subscribe(elsewhere, "global-x")

        vote(live, "1", 1, "global-x")

        assert [0, 1, 0] == elsewhere.update()["data"]["results"]


def test_an_extension_level_delete_removes_poll_and_entry_in_all_channels(live, game, broadcaster, backend):
    broadcaster.post("channel_state", json={"mine": 1})
    with linked_game(live, "888") as elsewhere:
        for each in (game, elsewhere):
            create(each)

        backend.delete("vote", params={"id": "color"}).raise_for_status()

        assert [{"mine": 1}, {}] == [state(game), state(elsewhere)]
        assert [404, 404] == [each.error("get", "poll", {"poll_id": "color"})["status"] for each in (game, elsewhere)]


@pytest.mark.parametrize(
    "own", [1, "text", {"prompt": "mine"}, {"prompt": "", "options": [], "user_data": 0, "x": 1}, []]
)
def test_deleting_a_poll_keeps_a_developers_value_under_its_name(game, own):
    game.data("set", "state", {"state_id": "channel", "state": {"color": own}})

    game.data("delete", "poll", {"poll_id": "color"})

    assert {"color": own} == state(game)


def test_replacing_the_state_keeps_the_poll(game):
    create(game)

    game.data("set", "state", {"state_id": "channel", "state": {}})

    assert ({}, "active") == (state(game), poll(game)["poll"]["status"])


def test_a_poll_defined_over_rest_has_no_entry(game, broadcaster):
    broadcaster.post("vote_config", json={"id": "color", "config": {"prompt": "Which?"}}).raise_for_status()

    assert {} == state(game)


def test_state_subscribers_receive_the_entry_and_its_removal(game, other):
    other.data("subscribe", "state", {"topic_id": "channel"})

    create(game)
    game.data("delete", "poll", {"poll_id": "color"})

    entry = {"prompt": "Which?", "options": OPTIONS, "user_data": None}
    assert [{"color": entry}, {}] == [other.update()["data"]["state"] for _ in range(2)]
    assert other.no_update()
