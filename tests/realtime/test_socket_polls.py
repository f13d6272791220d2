"""Polls over the socket: their life, their updates and their entry in the channel state (Poll; rulings P4, X5, X6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emulator.clock import MINUTE, SECOND
from support.service import CHANNEL, CLIENT_ID, LiveServer
from support.socket_client import SocketClient, linked_game

START = 2_000_000_000
"""In Unix seconds."""
OPTIONS = ["Blue", "Red", "Orange"]


@pytest.fixture
def other(live: LiveServer) -> Iterator[SocketClient]:
    """A second game of channel 777."""
    with linked_game(live) as game:
        yield game


@pytest.fixture
def frozen(live: LiveServer) -> LiveServer:
    """The service with its clock standing at `START`: no update comes because time passes."""
    live.set(START * SECOND)
    return live


def create(game: SocketClient, poll_id: str = "colour", **members: Any) -> dict[str, Any]:
    body = {"poll_id": poll_id, "prompt": "Which?", "options": OPTIONS, **members}
    return game.data("create", "poll", body)


def poll(game: SocketClient, poll_id: str = "colour") -> dict[str, Any]:
    return game.data("get", "poll", {"poll_id": poll_id})


def follow(game: SocketClient, poll_id: str = "colour") -> None:
    game.data("subscribe", "poll", {"topic_id": poll_id})


def configure(game: SocketClient, poll_id: str = "colour", **config: object) -> dict[str, Any]:
    return game.data("reconfigure", "poll", {"poll_id": poll_id, "config": config})


def vote(live: LiveServer, user: str, value: int, poll_id: str = "colour", channel: str = CHANNEL) -> int:
    viewer = live.client("viewer", user=user, channel=channel)
    return viewer.post("vote", params={"id": poll_id}, json={"value": value}).status_code


def state(game: SocketClient) -> dict[str, Any]:
    return dict(game.data("get", "state", {"state_id": "channel"})["state"])


def statuses(game: SocketClient, number: int) -> list[str]:
    """Of the next so many updates; and the proof that there are no more."""
    seen = [game.update()["data"]["poll"]["status"] for _ in range(number)]
    assert game.no_update()
    return seen


@pytest.mark.ruling("P4", "X5")
def test_a_created_poll_is_answered_with_its_definition_and_zeros(game):
    assert {"ok": True} == create(game, user_data={"mystery": True})

    view = {"poll_id": "colour", "prompt": "Which?", "options": OPTIONS, "status": "active"}
    assert {
        "topic_id": "colour",
        "poll": {**view, "user_data": {"mystery": True}},
        "results": [0, 0, 0],
        "mean": 0,
        "sum": 0,
        "count": 0,
        "stddev": 0,
    } == poll(game)


@pytest.mark.ruling("P4", "X5")
def test_votes_over_rest_are_counted_per_option_and_all_of_them_in_the_statistics(live, game):
    create(game)
    for user, value in enumerate([0, 0, 2, 50, -99]):
        vote(live, str(user), value)

    standing = poll(game)

    assert [2, 0, 1] == standing["results"]
    assert (5, -47, -9.4) == (standing["count"], standing["sum"], standing["mean"])


@pytest.mark.ruling("X5")
def test_the_game_and_the_rest_interface_see_one_definition(game, viewer):
    create(game, config={"totalVotesPerUser": 5, "endsAt": 0})

    definition = viewer().get("vote_config", params={"id": "colour"}).json()

    assert ("Which?", OPTIONS, 5) == (definition["prompt"], definition["options"], definition["totalVotesPerUser"])


@pytest.mark.ruling("X5")
def test_a_poll_that_exists_by_its_votes_alone_has_no_options_and_64_counters(live, game):
    vote(live, "1", 63)

    standing = poll(game)

    view = {"poll_id": "colour", "prompt": "", "options": [], "status": "active", "user_data": None}
    assert view == standing["poll"]
    assert [0] * 63 + [1] == standing["results"]


@pytest.mark.ruling("X5")
@pytest.mark.parametrize(("action", "data"), [("get", {}), ("reconfigure", {"config": {"disabled": True}})])
def test_an_absent_poll_is_404(game, action, data):
    error = game.error(action, "poll", {"poll_id": "nothing", **data})

    assert (404, "Not Found") == (error["status"], error["title"])


@pytest.mark.ruling("X5")
def test_deleting_an_absent_poll_is_no_error(game):
    assert {"ok": True} == game.data("delete", "poll", {"poll_id": "nothing"})


@pytest.mark.ruling("P4", "X5")
def test_creating_an_existing_poll_replaces_its_definition_and_keeps_its_votes(live, game):
    create(game)
    vote(live, "1", 1)

    create(game, prompt="Anew?", options=["a", "b"])

    standing = poll(game)
    assert ("Anew?", [0, 1], 1) == (standing["poll"]["prompt"], standing["results"], standing["count"])


@pytest.mark.ruling("X5")
def test_deleting_a_poll_ends_its_votes_and_its_definition_on_both_sides(live, game, viewer):
    create(game)
    vote(live, "1", 1)

    game.data("delete", "poll", {"poll_id": "colour"})

    assert 404 == game.error("get", "poll", {"poll_id": "colour"})["status"]
    assert 404 == viewer().get("vote_config", params={"id": "colour"}).status_code
    assert 0 == viewer().get("vote", params={"id": "colour"}).json()["count"]


@pytest.mark.ruling("P4", "X5")
def test_a_disabled_poll_refuses_votes_and_stays_active(live, game):
    create(game)
    seen = [vote(live, "1", 1)]

    configure(game, disabled=True)
    seen.append(vote(live, "2", 1))
    status = poll(game)["poll"]["status"]
    configure(game, disabled=False)

    assert ([200, 400, 200], "active") == ([*seen, vote(live, "3", 1)], status)


@pytest.mark.ruling("P4", "X5")
def test_a_stopped_poll_has_expired_and_refuses_votes_until_it_is_deleted(live, game):
    create(game)

    configure(game, endsAt=-1)

    assert ("expired", 400) == (poll(game)["poll"]["status"], vote(live, "1", 1))
    game.data("delete", "poll", {"poll_id": "colour"})
    assert 200 == vote(live, "1", 1)


@pytest.mark.ruling("P4", "X5")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"poll_id": ""},
        {"poll_id": None},
        {"poll_id": 7},
        {"poll_id": "a b"},
        {"poll_id": "x" * 65},
        {"poll_id": "p", "options": []},
        {"poll_id": "p", "options": ["x"] * 65},
        {"poll_id": "p", "options": [1]},
        {"poll_id": "p", "options": None},
        {"poll_id": "p", "options": ["é" * 65]},
        {"poll_id": "p", "prompt": "x" * 257},
        {"poll_id": "p", "prompt": None},
        {"poll_id": "p", "user_data": "x" * 1_024},
        {"poll_id": "p", "config": []},
        {"poll_id": "p", "config": {"endsAt": "soon"}},
        {"poll_id": "p", "config": {"startsAt": 2, "endsAt": 1}},
        {"poll_id": "p", "config": {"totalVotesPerUser": 0}},
        {"poll_id": "p", "config": {"endsIn": -5}},
        {"poll_id": "p", "config": {"endsIn": 10**30}},
    ],
)
def test_what_no_poll_can_be_is_400_and_leaves_nothing_behind(game, body):
    error = game.error("create", "poll", body)

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {} == state(game)
    assert 404 == game.error("get", "poll", {"poll_id": "p"})["status"]


@pytest.mark.ruling("P4", "X5")
@pytest.mark.parametrize("poll_id", ["default", "cpp-drive-poll", "a_b", "$", "global-x", "x" * 64, "0"])
def test_every_id_that_published_clients_use_is_taken(game, poll_id):
    create(game, poll_id)

    assert poll_id == poll(game, poll_id)["poll"]["poll_id"]


@pytest.mark.ruling("X5")
def test_a_viewer_reads_and_follows_polls_and_neither_creates_nor_changes_them(live, game):
    create(game)
    token = live.client("viewer", user="5", channel=CHANNEL).headers["Authorization"].split()[1]
    with SocketClient(live) as viewer:
        viewer.data("authenticate", data={"client_id": CLIENT_ID, "jwt": token})
        follow(viewer)
        seen = [
            viewer.error(action, "poll", {"poll_id": "colour", "config": {}})["status"]
            for action in ("create", "reconfigure", "delete")
        ]

        assert ([403] * 3, "active") == (seen, poll(viewer)["poll"]["status"])


@pytest.mark.ruling("P4", "X5")
def test_polls_of_other_channels_are_others(live, game):
    create(game)
    with linked_game(live, "888") as elsewhere:
        follow(elsewhere)
        follow(elsewhere, "*")

        vote(live, "1", 1)
        live.advance(SECOND)

        assert 404 == elsewhere.error("get", "poll", {"poll_id": "colour"})["status"]
        assert [] == statuses(elsewhere, 0)


@pytest.mark.ruling("P4", "X5")
def test_a_global_poll_is_one_in_all_channels(live, game):
    create(game, "global-x")
    with linked_game(live, "888") as elsewhere:
        follow(elsewhere, "global-x")

        vote(live, "1", 1, "global-x")

        assert [0, 1, 0] == elsewhere.update()["data"]["results"]


@pytest.mark.ruling("X6")
def test_a_created_poll_appears_in_the_channel_state_under_its_id(game, broadcaster):
    broadcaster.post("channel_state", json={"mine": 1})

    create(game, user_data={"mystery": True})

    entry = {"prompt": "Which?", "options": OPTIONS, "user_data": {"mystery": True}}
    assert {"mine": 1, "colour": entry} == broadcaster.get("channel_state").json() == state(game)


@pytest.mark.ruling("X6")
@pytest.mark.parametrize("side", ["socket", "rest"])
def test_the_entry_leaves_with_the_poll(game, broadcaster, side):
    broadcaster.post("channel_state", json={"mine": 1})
    create(game)

    if side == "socket":
        game.data("delete", "poll", {"poll_id": "colour"})
    else:
        broadcaster.delete("vote", params={"id": "colour"}).raise_for_status()

    assert {"mine": 1} == state(game)


@pytest.mark.ruling("X6")
@pytest.mark.parametrize(
    "own", [1, "text", {"prompt": "mine"}, {"prompt": "", "options": [], "user_data": 0, "x": 1}, []]
)
def test_a_developer_s_own_value_under_that_name_stays(game, own):
    game.data("set", "state", {"state_id": "channel", "state": {"colour": own}})

    game.data("delete", "poll", {"poll_id": "colour"})

    assert {"colour": own} == state(game)


@pytest.mark.ruling("X6")
def test_the_poll_lives_on_when_the_state_is_replaced(game):
    create(game)

    game.data("set", "state", {"state_id": "channel", "state": {}})

    assert ({}, "active") == (state(game), poll(game)["poll"]["status"])


@pytest.mark.ruling("X6")
def test_a_poll_defined_over_rest_has_no_entry(game, broadcaster):
    broadcaster.post("vote_config", json={"id": "colour", "config": {"prompt": "Which?"}}).raise_for_status()

    assert {} == state(game)


@pytest.mark.ruling("X5", "X6")
def test_subscribers_of_the_channel_state_are_told_of_the_entry_and_of_its_leaving(game, other):
    other.data("subscribe", "state", {"topic_id": "channel"})

    create(game)
    game.data("delete", "poll", {"poll_id": "colour"})

    entry = {"prompt": "Which?", "options": OPTIONS, "user_data": None}
    assert [{"colour": entry}, {}] == [other.update()["data"]["state"] for _ in range(2)]
    assert other.no_update()


@pytest.mark.ruling("X5")
def test_the_order_in_which_clients_run_a_poll_works_from_nothing(frozen, game):
    for action, target, data in (
        ("delete", "poll", {"poll_id": "run"}),
        ("unsubscribe", "poll", {"topic_id": "run"}),
        ("subscribe", "poll", {"topic_id": "run"}),
        ("create", "poll", {"poll_id": "run", "prompt": "?", "options": ["a"], "config": {"endsIn": 4}}),
    ):
        assert {"ok": True} == game.data(action, target, data)

    vote(frozen, "1", 0, "run")
    first = game.update()["data"]
    frozen.advance(4 * SECOND)
    last = game.update()["data"]

    assert (("active", [1]), ("expired", [1])) == (
        (first["poll"]["status"], first["results"]),
        (last["poll"]["status"], last["results"]),
    )
    assert game.no_update()


@pytest.mark.ruling("X5")
def test_neither_creating_nor_subscribing_nor_disabling_is_an_update(frozen, game):
    follow(game)
    create(game)
    follow(game)
    configure(game, disabled=True)
    configure(game, disabled=False)
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)


@pytest.mark.ruling("X5")
def test_a_vote_updates_every_subscriber_with_what_get_answers(frozen, game, other):
    create(game)
    for each in (game, other):
        follow(each)

    vote(frozen, "1", 2)

    update = game.update()
    assert ("update", "poll", 65_535) == tuple(update["meta"][name] for name in ("action", "target", "request_id"))
    assert poll(game) == update["data"] == other.update()["data"]


@pytest.mark.ruling("X5")
def test_a_refused_vote_is_no_update(frozen, game):
    create(game, config={"disabled": True})
    follow(game)

    vote(frozen, "1", 1)
    frozen.advance(SECOND)

    assert [] == statuses(game, 0)


@pytest.mark.ruling("X5")
def test_many_votes_are_one_update_at_once_and_one_with_the_last_state_after_the_pause(frozen, game):
    create(game)
    follow(game)
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


@pytest.mark.ruling("X5")
def test_the_pause_of_one_poll_does_not_hold_up_another(frozen, game):
    for poll_id in ("a", "b"):
        follow(game, poll_id)
        vote(frozen, "1", 1, poll_id)

    assert ["a", "b"] == [game.update()["data"]["topic_id"] for _ in range(2)]


@pytest.mark.ruling("X5")
def test_the_star_follows_all_polls_of_the_channel(frozen, game):
    follow(game, "*")
    for poll_id in ("a", "b", "default"):
        vote(frozen, "1", 1, poll_id)

    assert ["a", "b", "default"] == [game.update()["data"]["topic_id"] for _ in range(3)]
    game.data("unsubscribe", "poll", {"topic_id": "*"})
    vote(frozen, "1", 1, "c")
    assert [] == statuses(game, 0)


@pytest.mark.ruling("X5")
def test_who_follows_a_poll_and_the_star_hears_of_it_once(frozen, game):
    follow(game, "*")
    follow(game)

    vote(frozen, "1", 1)

    assert ["active"] == statuses(game, 1)


@pytest.mark.ruling("X5")
def test_a_poll_becomes_active_and_expires_with_one_update_each_when_the_clock_passes(frozen, game):
    follow(game)
    create(game, config={"startsAt": START + 10, "endsAt": START + 20})
    before = poll(game)["poll"]["status"]

    frozen.advance(10 * SECOND - 1)
    pending = statuses(game, 0)
    frozen.advance(1)
    begun = statuses(game, 1)
    frozen.advance(10 * SECOND)

    assert ("pending", [], ["active"], ["expired"]) == (before, pending, begun, statuses(game, 1))


@pytest.mark.ruling("X5")
def test_a_poll_whose_begin_and_end_are_passed_in_one_move_has_expired(frozen, game):
    follow(game)
    create(game, config={"startsAt": START + 10, "endsAt": START + 20})

    frozen.advance(MINUTE)

    assert "expired" == game.update()["data"]["poll"]["status"]
    assert game.no_update()


@pytest.mark.ruling("X5")
def test_a_subscriber_who_comes_after_the_creation_hears_of_the_turns_too(frozen, game, other):
    create(game, config={"startsIn": 10, "endsIn": 20})
    follow(other)

    frozen.advance(10 * SECOND)
    begun = statuses(other, 1)
    frozen.advance(10 * SECOND)

    assert (["active"], ["expired"]) == (begun, statuses(other, 1))


@pytest.mark.ruling("X5")
def test_the_star_hears_of_turns_too(frozen, game):
    follow(game, "*")
    create(game, config={"endsIn": 10})

    frozen.advance(10 * SECOND)

    assert ["expired"] == statuses(game, 1)


@pytest.mark.ruling("X5")
def test_a_poll_defined_over_rest_turns_too(frozen, game, broadcaster):
    follow(game)
    broadcaster.post("vote_config", json={"id": "colour", "config": {"endsIn": 10}}).raise_for_status()

    frozen.advance(10 * SECOND)

    assert ["expired"] == statuses(game, 1)


@pytest.mark.ruling("X5")
def test_a_moved_end_is_the_only_end(frozen, game):
    follow(game)
    create(game, config={"endsIn": 10})
    configure(game, endsIn=30)

    frozen.advance(29 * SECOND)
    early = statuses(game, 0)
    frozen.advance(SECOND)

    assert ([], ["expired"]) == (early, statuses(game, 1))


@pytest.mark.ruling("X5")
def test_a_stop_is_one_expired_update_and_further_stops_are_none(frozen, game):
    create(game)
    follow(game)

    for _ in range(3):
        configure(game, endsAt=-1)
    frozen.advance(MINUTE)

    assert ["expired"] == statuses(game, 1)


@pytest.mark.ruling("X5")
def test_the_stop_of_a_poll_is_told_although_a_vote_was_told_just_now(frozen, game):
    create(game)
    follow(game)
    vote(frozen, "1", 1)
    assert "active" == game.update()["data"]["poll"]["status"]

    configure(game, endsAt=-1)
    frozen.advance(SECOND)

    assert ["expired"] == statuses(game, 1)


@pytest.mark.ruling("X5")
@pytest.mark.parametrize("side", ["socket", "rest"])
def test_a_deleted_poll_is_silent(frozen, game, broadcaster, side):
    create(game, config={"endsIn": 10})
    follow(game)

    if side == "socket":
        game.data("delete", "poll", {"poll_id": "colour"})
    else:
        broadcaster.delete("vote", params={"id": "colour"}).raise_for_status()
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)


@pytest.mark.ruling("X5")
def test_a_poll_that_is_deleted_while_an_update_waits_is_silent(frozen, game):
    create(game)
    follow(game)
    for user in range(2):
        vote(frozen, str(user), 1)
    game.update()

    game.data("delete", "poll", {"poll_id": "colour"})
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)


@pytest.mark.ruling("X5")
def test_unsubscribing_ends_the_updates(frozen, game):
    create(game)
    follow(game)
    game.data("unsubscribe", "poll", {"topic_id": "colour"})

    vote(frozen, "1", 1)
    configure(game, endsAt=-1)
    frozen.advance(SECOND)

    assert [] == statuses(game, 0)
