"""Polls over the socket, and their entries in the channel state (Poll; rulings A4, P4, X5, X6)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.core.clock import MINUTE, SECOND
from support.authentication import authenticated_game
from support.service import LiveServer
from support.socket_client import SocketClient, linked_game
from support.socket_polls import OPTIONS, configure, create, poll, statuses, subscribe, vote


def state(game: SocketClient) -> dict[str, Any]:
    return dict(game.data("get", "state", {"state_id": "channel"})["state"])


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


def test_a_poll_without_a_definition_has_64_results(live, game):
    vote(live, "1", 63)

    standing = poll(game)

    view = {"poll_id": "color", "prompt": "", "options": [], "status": "active", "user_data": None}
    assert view == standing["poll"]
    assert [0] * 63 + [1] == standing["results"]


def test_a_global_poll_is_shared_by_all_channels(live, game):
    with authenticated_game(live, "admin") as admin:
        create(admin, "global-x")
    with linked_game(live, "888") as elsewhere:
        subscribe(elsewhere, "global-x")

        vote(live, "1", 1, "global-x")

        assert [0, 1, 0] == elsewhere.update()["data"]["results"]


def test_an_empty_list_of_options_removes_those_of_the_poll(game):
    create(game)

    configure(game, options=[])

    assert [] == poll(game)["poll"]["options"]


def test_replacing_the_state_keeps_the_poll(game):
    create(game)

    game.data("set", "state", {"state_id": "channel", "state": {}})

    assert ({}, "active") == (state(game), poll(game)["poll"]["status"])


def test_a_poll_defined_over_rest_has_no_entry(game, broadcaster):
    broadcaster.post("vote_config", json={"id": "color", "config": {"prompt": "Which?"}}).raise_for_status()

    assert {} == state(game)


START = 2_000_000_000
"""In Unix seconds."""


@pytest.fixture
def frozen(live: LiveServer) -> LiveServer:
    """The service with its clock frozen at `START`, so that no update comes from passing time."""
    live.set(START * SECOND)
    return live


def test_creating_subscribing_and_disabling_cause_no_update(frozen, game):
    subscribe(game)
    create(game)
    subscribe(game)
    configure(game, disabled=True)
    configure(game, disabled=False)
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)


def test_many_votes_cause_one_update_at_once_and_one_after_the_pause(frozen, game):
    create(game)
    subscribe(game)
    for user in range(20):
        vote(frozen, str(user), 1)
    first = game.update()["data"]["count"]

    frozen.advance(SECOND)
    counts = [first]
    while counts[-1] < 20:
        counts.append(game.update()["data"]["count"])

    assert sorted(set(counts)) == counts
    assert len(counts) <= 3
    assert game.no_update()


def test_overlapping_subscriptions_deliver_an_update_once(frozen, game):
    subscribe(game, "*")
    subscribe(game)

    vote(frozen, "1", 1)

    assert ["active"] == statuses(game, 1)


def test_passing_start_and_end_in_one_move_is_one_expired_update(frozen, game):
    subscribe(game)
    create(game, config={"startsAt": START + 10, "endsAt": START + 20})

    frozen.advance(MINUTE)

    assert "expired" == game.update()["data"]["poll"]["status"]
    assert game.no_update()


@pytest.mark.parametrize(("topic", "way"), [("color", "socket"), ("*", "REST")])
def test_earlier_and_later_subscribers_receive_start_and_end(frozen, game, other, broadcaster, topic, way):
    config = {"startsIn": 10, "endsIn": 20}
    subscribe(game, topic)
    if way == "socket":
        create(game, config=config)
    else:
        broadcaster.post("vote_config", json={"id": "color", "config": config}).raise_for_status()
    subscribe(other, topic)

    for status in ("active", "expired"):
        frozen.advance(10 * SECOND)
        assert [[status]] * 2 == [statuses(each, 1) for each in (game, other)]


def test_a_moved_end_replaces_the_first(frozen, game):
    subscribe(game)
    create(game, config={"endsIn": 10})
    configure(game, endsIn=30)

    frozen.advance(29 * SECOND)
    early = statuses(game, 0)
    frozen.advance(SECOND)

    assert ([], ["expired"]) == (early, statuses(game, 1))


def test_deleting_a_poll_drops_its_pending_update_and_that_of_its_end(frozen, game):
    create(game, config={"endsIn": 10})
    subscribe(game)
    for user in range(2):
        vote(frozen, str(user), 1)
    game.update()

    game.data("delete", "poll", {"poll_id": "color"})
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)


def test_stopping_a_poll_repeatedly_right_after_a_vote_is_one_update(frozen, game):
    create(game)
    subscribe(game)
    vote(frozen, "1", 1)
    assert "active" == game.update()["data"]["poll"]["status"]

    for _ in range(3):
        configure(game, endsAt=-1)
    frozen.advance(MINUTE)

    assert ["expired"] == statuses(game, 1)
