"""Concurrent writes: none is lost, none counts twice, and every read is consistent (ruling P4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from support.connection import Connection

pytestmark = pytest.mark.slow


async def test_200_users_who_vote_repeatedly_are_counted_once_each(live, viewer):
    async def vote(user: int) -> list[int]:
        async with Connection(live, viewer(str(user))) as voter:
            return [(await voter.post("vote", {"value": value}))["vote"] for value in (1, 2, user % 64)]

    votes = await asyncio.gather(*(vote(user) for user in range(200)))

    poll = viewer("0").get("vote").json()
    expected = Counter(user % 64 for user in range(200))
    assert [[1, 2, user % 64] for user in range(200)] == votes
    assert [expected[value] for value in range(64)] == poll["stats"]["specific"]
    assert (200, sum(value * voters for value, voters in expected.items())) == (poll["count"], poll["sum"])


async def test_each_response_to_a_concurrent_vote_is_one_consistent_state(live, viewer):
    async def vote(user: int) -> dict[str, Any]:
        async with Connection(live, viewer(str(user))) as voter:
            return await voter.post("vote", {"value": 2})

    polls = await asyncio.gather(*(vote(user) for user in range(100)))

    assert list(range(1, 101)) == sorted(poll["count"] for poll in polls)
    assert all(poll["sum"] == 2 * poll["count"] == 2 * poll["specific"][2] for poll in polls)


async def test_200_users_adding_blobs_concurrently_lose_none(live, viewer, broadcaster):
    async def collect(user: int) -> None:
        async with Connection(live, viewer(str(user))) as voter:
            for number in range(3):
                assert {} == await voter.post("accumulate", [user, number])

    await asyncio.gather(*(collect(user) for user in range(200)))

    data = [tuple(entry["data"]) for entry in broadcaster.get("accumulate").json()["data"]]
    assert 600 == len(data) == len(set(data))
    assert all(data.index((user, 0)) > data.index((user, 1)) > data.index((user, 2)) for user in range(200))


async def test_concurrent_additive_votes_never_exceed_the_limit(live, viewer, broadcaster):
    broadcaster.post("vote_config", json={"config": {"totalVotesPerUser": 50, "votesPerOption": 50}})

    async def vote() -> int:
        async with Connection(live, viewer("U1")) as voter:
            status, _ = await voter.send("vote", {"value": 1, "count": 3})
            return status

    statuses = await asyncio.gather(*(vote() for _ in range(40)))

    assert {200: 16, 400: 24} == Counter(statuses)
    assert 48 == viewer("U1").get("vote").json()["count"]
