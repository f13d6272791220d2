"""Polls, rankings and buffers are listed by channel: `polls`, `rankings` and `buffers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.service import Client, LiveServer

DAY = 86_400_000

LISTS = ("polls", "rankings", "buffers")
every_list = pytest.mark.parametrize("name", LISTS)


def add(client: Client, name: str, thing: str) -> None:
    """Vote in a poll, answer in a ranking or add to a buffer."""
    path, body = {"polls": ("vote", {"value": 1}), "rankings": ("rank", {"key": "a"}), "buffers": ("accumulate", 1)}[
        name
    ]
    client.post(path, params={"id": thing}, json=body).raise_for_status()


def listed(client: Client, name: str, **query: object) -> list[dict[str, Any]]:
    return list(client.get(name, params=query).raise_for_status().json()[name])


def ids(client: Client, name: str, **query: object) -> list[tuple[str, str]]:
    return [(each["channel_id"], each["id"]) for each in listed(client, name, **query)]


@pytest.fixture
def in_channel(live: LiveServer) -> Callable[[str], Client]:
    """A viewer of a channel."""
    return lambda channel: live.client("viewer", user="5551", channel=channel)


@every_list
def test_nothing_is_listed_at_first(broadcaster: Client, name: str):
    assert {name: [], "next": "0"} == broadcaster.get(name).json()


@every_list
def test_a_broadcaster_lists_their_channel(broadcaster: Client, in_channel, name: str):
    for channel, thing in (("777", "b"), ("777", "a"), ("888", "c")):
        add(in_channel(channel), name, thing)

    assert [("777", "a"), ("777", "b")] == ids(broadcaster, name) == ids(broadcaster, name, channel_id="888")


@every_list
def test_a_backend_lists_all_channels_or_one(backend: Client, in_channel, name: str):
    for channel, thing in (("888", "a"), ("777", "b")):
        add(in_channel(channel), name, thing)
    add(backend, name, "c")

    assert [("", "c"), ("777", "b"), ("888", "a")] == ids(backend, name)
    assert [("888", "a")] == ids(backend, name, channel_id="888")


@pytest.mark.parametrize("name", ["polls", "rankings"])
def test_global_ids_belong_to_no_channel(backend: Client, broadcaster: Client, in_channel, name: str):
    add(in_channel("777"), name, "global-x")

    assert [("", "global-x")] == ids(backend, name)
    assert [] == ids(broadcaster, name)


@every_list
def test_another_extension_s_data_is_not_listed(live: LiveServer, backend: Client, name: str):
    add(live.client("viewer", user="5551", channel="777", client_id="other-extension"), name, "a")

    assert [] == ids(backend, name)


@every_list
def test_pages_follow_each_other(backend: Client, in_channel, name: str):
    expected = [(channel, thing) for channel in ("777", "888") for thing in ("a", "b", "c")]
    for channel, thing in reversed(expected):
        add(in_channel(channel), name, thing)

    pages, cursor = [], "0"
    while not pages or cursor != "0":
        answer = backend.get(name, params={"limit": 2, "cursor": cursor}).raise_for_status().json()
        pages.append([(each["channel_id"], each["id"]) for each in answer[name]])
        cursor = answer["next"]

    assert [expected[:2], expected[2:4], expected[4:]] == pages


@every_list
@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ({"limit": "0"}, "limit: 0 is not within 1 to 1000"),
        ({"limit": "x"}, "limit: 'x' is not an integer"),
        ({"cursor": "x"}, "cursor: use '0', or `next` of an earlier page"),
    ],
)
def test_a_malformed_page_is_refused(broadcaster: Client, name: str, query: dict[str, str], fault: str):
    answer = broadcaster.get(name, params=query)

    assert (400, fault) == (answer.status_code, answer.json()["info"])


def test_a_listed_poll_has_its_votes_status_and_latest_vote(live: LiveServer, broadcaster: Client, viewer):
    voted = live.freeze()
    for user in ("1", "2", "3"):
        add(viewer(user), "polls", "lunch")
    live.advance(5000)
    ended, later = (live.now() // 1000 + seconds for seconds in (-1, 60))
    for poll, config in {"lunch": {"prompt": "Which?"}, "over": {"endsAt": ended}, "soon": {"startsAt": later}}.items():
        broadcaster.post("vote_config", json={"id": poll, "config": config}).raise_for_status()

    assert [
        {"id": "lunch", "channel_id": "777", "count": 3, "status": "active", "latest": voted},
        {"id": "over", "channel_id": "777", "count": 0, "status": "expired", "latest": 0},
        {"id": "soon", "channel_id": "777", "count": 0, "status": "pending", "latest": 0},
    ] == listed(broadcaster, "polls")


def test_a_poll_with_additive_votes_is_listed_with_all_of_them(broadcaster: Client, viewer):
    config = {"totalVotesPerUser": 9, "votesPerOption": 9, "distinctOptionsPerUser": 2}
    broadcaster.post("vote_config", json={"id": "many", "config": config}).raise_for_status()
    for value in (1, 2):
        viewer().post("vote?id=many", json={"value": value, "count": 3}).raise_for_status()

    assert [6] == [each["count"] for each in listed(broadcaster, "polls")]


def test_a_listed_ranking_has_its_users_and_latest_answer(live: LiveServer, broadcaster: Client, viewer):
    live.freeze()
    add(viewer("1"), "rankings", "color")
    live.advance(5)
    add(viewer("2"), "rankings", "color")
    add(viewer("2"), "rankings", "color")

    assert [{"id": "color", "channel_id": "777", "count": 2, "latest": live.now()}] == listed(broadcaster, "rankings")


def test_a_listed_buffer_has_its_entries_and_the_latest(live: LiveServer, broadcaster: Client, viewer):
    live.freeze()
    add(viewer(), "buffers", "ratings")
    live.advance(DAY - 1)
    add(viewer(), "buffers", "ratings")
    latest = live.now()

    assert [{"id": "ratings", "channel_id": "777", "count": 2, "latest": latest}] == listed(broadcaster, "buffers")

    live.advance(1)

    assert [1] == [each["count"] for each in listed(broadcaster, "buffers")]


def test_deleted_and_expired_polls_and_rankings_are_not_listed(live: LiveServer, broadcaster: Client, viewer):
    for name, path in (("polls", "vote"), ("rankings", "rank")):
        add(viewer(), name, "a")
        add(viewer(), name, "b")
        broadcaster.delete(path, params={"id": "a"}).raise_for_status()

        assert [("777", "b")] == ids(broadcaster, name)

    live.advance(7 * DAY)

    assert [[], []] == [ids(broadcaster, name) for name in ("polls", "rankings")]
