"""Updates of polls over the socket (Poll; ruling X5)."""

from __future__ import annotations

import pytest

from emulator.core.clock import MINUTE, SECOND
from support.service import LiveServer
from support.socket_polls import configure, create, poll, statuses, subscribe, vote

START = 2_000_000_000
"""In Unix seconds."""


@pytest.fixture
def frozen(live: LiveServer) -> LiveServer:
    """The service with its clock frozen at `START`, so that no update comes from passing time."""
    live.set(START * SECOND)
    return live


def test_the_order_of_requests_of_published_clients_works(frozen, game):
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


def test_creating_subscribing_and_disabling_cause_no_update(frozen, game):
    subscribe(game)
    create(game)
    subscribe(game)
    configure(game, disabled=True)
    configure(game, disabled=False)
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)


def test_a_refused_vote_causes_no_update(frozen, game):
    create(game, config={"disabled": True})
    subscribe(game)

    vote(frozen, "1", 1)
    frozen.advance(SECOND)

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


def test_the_pause_of_one_poll_does_not_delay_another(frozen, game):
    for poll_id in ("a", "b"):
        subscribe(game, poll_id)
        vote(frozen, "1", 1, poll_id)

    assert ["a", "b"] == [game.update()["data"]["topic_id"] for _ in range(2)]


def test_the_star_subscribes_to_all_polls_of_the_channel(frozen, game):
    subscribe(game, "*")
    for poll_id in ("a", "b", "default"):
        vote(frozen, "1", 1, poll_id)

    assert ["a", "b", "default"] == [game.update()["data"]["topic_id"] for _ in range(3)]
    game.data("unsubscribe", "poll", {"topic_id": "*"})
    vote(frozen, "1", 1, "c")
    assert [] == statuses(game, 0)


def test_overlapping_subscriptions_deliver_an_update_once(frozen, game):
    subscribe(game, "*")
    subscribe(game)

    vote(frozen, "1", 1)

    assert ["active"] == statuses(game, 1)


def test_the_start_and_the_end_of_a_poll_are_one_update_each(frozen, game):
    subscribe(game)
    create(game, config={"startsAt": START + 10, "endsAt": START + 20})
    before = poll(game)["poll"]["status"]

    frozen.advance(10 * SECOND - 1)
    pending = statuses(game, 0)
    frozen.advance(1)
    begun = statuses(game, 1)
    frozen.advance(10 * SECOND)

    assert ("pending", [], ["active"], ["expired"]) == (before, pending, begun, statuses(game, 1))


def test_passing_start_and_end_in_one_move_is_one_expired_update(frozen, game):
    subscribe(game)
    create(game, config={"startsAt": START + 10, "endsAt": START + 20})

    frozen.advance(MINUTE)

    assert "expired" == game.update()["data"]["poll"]["status"]
    assert game.no_update()


@pytest.mark.parametrize("topic", ["color", "*"])
@pytest.mark.parametrize("way", ["socket", "REST"])
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


def test_stopping_a_poll_repeatedly_is_one_update(frozen, game):
    create(game)
    subscribe(game)

    for _ in range(3):
        configure(game, endsAt=-1)
    frozen.advance(MINUTE)

    assert ["expired"] == statuses(game, 1)


def test_a_stop_right_after_a_vote_is_an_update(frozen, game):
    create(game)
    subscribe(game)
    vote(frozen, "1", 1)
    assert "active" == game.update()["data"]["poll"]["status"]

    configure(game, endsAt=-1)
    frozen.advance(SECOND)

    assert ["expired"] == statuses(game, 1)


def test_unsubscribing_ends_the_updates(frozen, game):
    create(game)
    subscribe(game)

    game.data("unsubscribe", "poll", {"topic_id": "color"})
    vote(frozen, "1", 1)
    configure(game, endsAt=-1)
    frozen.advance(SECOND)

    assert [] == statuses(game, 0)


@pytest.mark.parametrize("side", ["socket", "rest"])
def test_a_deleted_poll_sends_no_updates(frozen, game, broadcaster, side):
    create(game, config={"endsIn": 10})
    subscribe(game)

    if side == "socket":
        game.data("delete", "poll", {"poll_id": "color"})
    else:
        broadcaster.delete("vote", params={"id": "color"}).raise_for_status()
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)


def test_deleting_a_poll_drops_its_pending_update(frozen, game):
    create(game)
    subscribe(game)
    for user in range(2):
        vote(frozen, str(user), 1)
    game.update()

    game.data("delete", "poll", {"poll_id": "color"})
    frozen.advance(MINUTE)

    assert [] == statuses(game, 0)
