"""Additive votes: polls in which a user has more than one vote (ruling P4)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.service import Client

pytestmark = pytest.mark.ruling("P4")


def define(client: Client, **config: Any) -> None:
    client.post("vote_config", json={"config": config}).raise_for_status()


def vote(client: Client, value: int = 1, **fields: Any) -> httpx.Response:
    return client.post("vote", json={"value": value, **fields})


def poll(client: Client) -> dict[str, Any]:
    return client.get("vote").raise_for_status().json()


def log(client: Client) -> list[tuple[str, int, int]]:
    result = client.get("vote_logs").raise_for_status().json()["result"]
    return [(entry["identifier"], entry["value"], entry["count"]) for entry in result]


@pytest.fixture
def generous(broadcaster) -> Client:
    """The broadcaster of a poll with 1,024 votes per user and option."""
    define(broadcaster, totalVotesPerUser=1024, votesPerOption=1024, distinctOptionsPerUser=258)
    return broadcaster


def test_votes_up_to_the_limits_are_accepted(viewer, broadcaster):
    define(broadcaster, totalVotesPerUser=5, votesPerOption=3, distinctOptionsPerUser=2)

    statuses = [vote(viewer(), value, count=times).status_code for value, times in ((1, 3), (2, 2), (2, 1))]

    assert [200, 200, 400] == statuses


def test_the_limits_apply_per_user(viewer, broadcaster):
    define(broadcaster, totalVotesPerUser=2, votesPerOption=2)

    statuses = [vote(viewer(user), 1, count=2).status_code for user in ("U1", "U2", "U1")]

    assert [200, 200, 400] == statuses


def test_the_log_has_one_entry_per_user_and_value_with_its_count(live, viewer, generous, admin):
    live.freeze()
    for user, value, times in (("1", 7, 2), ("2", 7, 1), ("1", 8, 1), ("1", 7, 3)):
        vote(viewer(user), value, count=times)
        live.advance(1)

    assert [("2", 7, 1), ("1", 8, 1), ("1", 7, 5)] == log(admin)


def test_the_log_of_a_poll_with_one_vote_per_user_has_no_counts(viewer, admin):
    vote(viewer())

    assert ["identifier", "opaque", "timestamp", "value"] == sorted(admin.get("vote_logs").json()["result"][0])


def test_votes_before_the_definition_count_towards_its_limits(viewer, broadcaster):
    vote(viewer(), 1)
    define(broadcaster, totalVotesPerUser=2, votesPerOption=2)

    statuses = [vote(viewer(), 1).status_code for _ in range(2)]

    assert [200, 400] == statuses


def test_after_a_return_to_one_vote_the_next_vote_replaces_all(viewer, generous, admin):
    for value in (1, 2, 3):
        vote(viewer("U1"), value, count=10)
    vote(viewer("U2"), 1, count=10)
    define(generous, totalVotesPerUser=1)
    before = poll(viewer())["count"]

    answer = vote(viewer("U1"), 4).json()

    assert (40, 11, 14) == (before, answer["count"], answer["sum"])
    assert [("U2", 1), ("U1", 4)] == [
        (entry["identifier"], entry["value"]) for entry in admin.get("vote_logs").json()["result"]
    ]


def test_the_statistics_count_votes_not_users(viewer, generous):
    vote(viewer("U1"), 0, count=30)
    vote(viewer("U2"), 99, count=10)

    stats = poll(viewer())["stats"]

    assert (40, 990, 24.75) == (stats["count"], stats["sum"], stats["mean"])
    assert stats["stddev"] == pytest.approx((30 * 10) ** 0.5 * 99 / 40, rel=1e-15)
