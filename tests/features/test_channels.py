"""The channels of polls, rankings and accumulation buffers (Poll; rulings A2, A4)."""

from __future__ import annotations

import pytest

from support.service import Client

pytestmark = pytest.mark.ruling("A4")


def cast(client: Client, value: int = 1, where: str = "") -> dict:
    return client.post(f"vote{where}", json={"value": value}).raise_for_status().json()


def count(client: Client, where: str = "") -> int:
    return client.get(f"vote{where}").raise_for_status().json()["count"]


def ranking(client: Client, where: str = "") -> dict[str, int]:
    rows = client.get(f"rank{where}").raise_for_status().json()["data"]
    return {row["key"]: row["score"] for row in rows}


def blobs(client: Client, where: str = "") -> list[object]:
    return [entry["data"] for entry in client.get(f"accumulate{where}").raise_for_status().json()["data"]]


@pytest.fixture
def three_channels(live, viewer) -> None:
    """One vote, answer and blob in each of channel 777, channel 888 and no channel."""
    for user, channel in (("1", "777"), ("2", "888"), ("3", None)):
        client = viewer(user, channel=channel)
        cast(client, int(user))
        client.post("rank", json={"key": "blue"})
        client.post("accumulate", json=int(user))


@pytest.mark.parametrize("poll", ["globalx", "global_x", "Global-x", "GLOBAL-x", "x-global-"])
def test_only_the_exact_prefix_makes_a_poll_global(viewer, poll):
    cast(viewer(), 3, f"?id={poll}")

    assert 0 == count(viewer(channel="888"), f"?id={poll}")


@pytest.mark.parametrize("role", ["admin", "backend"])
def test_admin_and_backend_use_channel_id_or_else_the_channel_of_the_token(live, role, three_channels):
    client = live.client(role, user="9", channel="777")

    poll = cast(client, 5, "?channel_id=888")

    assert (2, 7) == (poll["count"], poll["sum"])
    assert (1, 2, 2) == (count(client), count(client, "?channel_id=888"), count(client, "?id=default&channel_id=888"))


@pytest.mark.parametrize("role", ["admin", "backend"])
def test_an_extension_level_token_reads_all_channels_together(live, role, three_channels):
    client = live.client(role)

    poll = client.get("vote").json()

    assert (3, 6, [0, 1, 1, 1]) == (poll["count"], poll["sum"], poll["specific"][:4])
    assert [1, 2, 3] == [vote["value"] for vote in client.get("vote_logs").json()["result"]]
    assert [3, 2, 1] == blobs(client)


@pytest.mark.parametrize("role", ["admin", "backend"])
def test_an_extension_level_token_reads_one_channel_with_channel_id(live, role, three_channels):
    client = live.client(role)

    assert 2 == client.get("vote?channel_id=888").json()["sum"]
    assert [2] == [vote["value"] for vote in client.get("vote_logs?channel_id=888").json()["result"]]
    assert {"blue": 1} == ranking(client, "?channel_id=888")
    assert [2] == blobs(client, "?channel_id=888")


def test_an_extension_level_delete_removes_the_poll_in_all_channels(viewer, backend, three_channels):
    cast(viewer("1"), 1, "?id=other")

    backend.delete("vote")

    assert [0, 0, 0] == [count(viewer("1", channel=channel)) for channel in ("777", "888", None)]
    assert (0, 1) == (count(backend), count(backend, "?id=other"))


def test_an_extension_level_delete_with_channel_id_affects_that_channel_only(backend, three_channels):
    backend.delete("vote?channel_id=888")
    backend.delete("rank?channel_id=888")

    assert (2, 4) == (count(backend), backend.get("vote").json()["sum"])
    assert {"blue": 2} == ranking(backend)


def test_an_extension_level_delete_removes_the_ranking_in_all_channels(broadcaster, backend, three_channels):
    backend.delete("rank")

    assert ({}, {}) == (ranking(backend), ranking(broadcaster))


def test_a_delete_in_one_channel_keeps_the_other_channels(broadcaster, backend, three_channels):
    broadcaster.delete("vote?channel_id=888")
    broadcaster.delete("rank")

    assert (0, 2, {"blue": 2}) == (count(broadcaster), count(backend), ranking(backend))


def test_an_extension_level_write_belongs_to_no_channel(viewer, broadcaster, backend):
    cast(backend, 5)
    backend.post("rank", json={"key": "blue"})
    backend.post("accumulate", json=5)

    assert (0, {}, []) == (count(broadcaster), ranking(broadcaster), blobs(broadcaster))
    assert (1, {"blue": 1}, [5]) == (count(backend), ranking(backend), blobs(backend))
    assert [""] == [entry["channel_id"] for entry in backend.get("accumulate").json()["data"]]


def test_an_extension_level_read_shows_the_callers_latest_vote_in_any_channel(live, viewer):
    cast(viewer("9", channel="777"), 1)
    cast(viewer("9", channel="888"), 2)

    assert 2 == live.client("admin", user="9").get("vote").json()["vote"]


def test_a_ranking_whose_id_is_the_prefix_alone_is_global(viewer, broadcaster):
    for user, channel in (("1", "777"), ("2", "888")):
        viewer(user, channel=channel).post("rank?id=global-", json={"key": "blue"})

    assert {"blue": 2} == ranking(broadcaster, "?id=global-")


def test_an_accumulation_buffer_belongs_to_a_channel_whatever_its_id(viewer, broadcaster, backend):
    for user, channel in (("1", "777"), ("2", "888")):
        viewer(user, channel=channel).post("accumulate?id=global-x", json=int(user))

    assert ([1], [2, 1]) == (blobs(broadcaster, "?id=global-x"), blobs(backend, "?id=global-x"))


def test_answers_from_all_channels_are_ranked_together(viewer, backend):
    for number, (channel, answer) in enumerate(
        [("1", "late"), ("2", "most"), ("3", "most"), ("2", "tie"), ("3", "late")]
    ):
        viewer(str(number), channel=channel).post("rank", json={"key": answer})

    rows = backend.get("rank").json()["data"]

    assert [("late", 2), ("most", 2), ("tie", 1)] == [(row["key"], row["score"]) for row in rows]


def test_an_extension_level_vote_returns_the_same_as_a_read(viewer, backend):
    viewer("U1", channel="c1").post("vote", json={"value": 6})
    viewer("U2", channel="c2").post("vote", json={"value": 4})

    voted = backend.post("vote", json={"value": 10}).json()

    assert (3, 20, 10) == (voted["count"], voted["sum"], voted["vote"])
    assert voted == backend.get("vote").json()
