"""Many at once: nothing is lost, nothing is counted twice, and what is read is one state."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from support.service import Client, LiveServer


class Voter:
    """A connection of its own, opened and used beside all the others; httpx's pool would queue them."""

    def __init__(self, live: LiveServer, client: Client) -> None:
        self._address = live.url.removeprefix("http://").split(":")
        self._credential = client.headers["Authorization"]

    async def __aenter__(self) -> Voter:
        host, port = self._address
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def post(self, path: str, body: object) -> dict[str, Any]:
        status, answer = await self.send(path, body)
        assert 200 == status, answer
        return answer

    async def send(self, path: str, body: object) -> tuple[int, dict[str, Any]]:
        text = json.dumps(body)
        self._writer.write(
            f"POST /v1/e/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {self._credential}\r\n"
            f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
        )
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        return int(head.split()[1]), json.loads(await self._reader.readexactly(length))


async def test_200_voters_who_vote_and_vote_again_are_each_counted_once(live, viewer):
    async def vote(user: int) -> list[int]:
        async with Voter(live, viewer(str(user))) as voter:
            return [(await voter.post("vote", {"value": value}))["vote"] for value in (1, 2, user % 64)]

    votes = await asyncio.gather(*(vote(user) for user in range(200)))

    poll = viewer("0").get("vote").json()
    expected = Counter(user % 64 for user in range(200))
    assert [[1, 2, user % 64] for user in range(200)] == votes
    assert [expected[value] for value in range(64)] == poll["stats"]["specific"]
    assert (200, sum(value * voters for value, voters in expected.items())) == (poll["count"], poll["sum"])


async def test_one_user_who_votes_over_200_connections_at_once_has_one_vote(live, viewer):
    async def vote(value: int) -> dict[str, Any]:
        async with Voter(live, viewer("U1")) as voter:
            return await voter.post("vote", {"value": value})

    polls = await asyncio.gather(*(vote(number % 64) for number in range(200)))

    assert {1} == {poll["count"] for poll in polls}
    assert all(poll["vote"] == poll["sum"] for poll in polls)
    assert 1 == viewer("U1").get("vote").json()["count"]


async def test_each_answer_to_a_concurrent_vote_is_one_state_of_the_poll(live, viewer):
    async def vote(user: int) -> dict[str, Any]:
        async with Voter(live, viewer(str(user))) as voter:
            return await voter.post("vote", {"value": 2})

    polls = await asyncio.gather(*(vote(user) for user in range(100)))

    assert list(range(1, 101)) == sorted(poll["count"] for poll in polls)
    assert all(poll["sum"] == 2 * poll["count"] == 2 * poll["specific"][2] for poll in polls)


async def test_200_concurrent_answers_are_each_counted_once(live, viewer, broadcaster):
    async def answer(user: int) -> dict[str, Any]:
        async with Voter(live, viewer(str(user))) as voter:
            await voter.post("rank", {"key": "first"})
            return await voter.post("rank", {"key": f"answer {user % 10}"})

    accepted = await asyncio.gather(*(answer(user) for user in range(200)))

    ranking = broadcaster.get("rank").json()["data"]
    assert [{"accepted": True, "original": "first"}] * 200 == accepted
    assert {f"answer {number}": 20 for number in range(10)} == {row["key"]: row["score"] for row in ranking}


async def test_200_concurrent_blobs_are_all_kept(live, viewer, broadcaster):
    async def collect(user: int) -> None:
        async with Voter(live, viewer(str(user))) as voter:
            for number in range(3):
                assert {} == await voter.post("accumulate", [user, number])

    await asyncio.gather(*(collect(user) for user in range(200)))

    data = [tuple(entry["data"]) for entry in broadcaster.get("accumulate").json()["data"]]
    assert 600 == len(data) == len(set(data))
    assert all(data.index((user, 0)) > data.index((user, 1)) > data.index((user, 2)) for user in range(200))


@pytest.mark.ruling("P4")
async def test_votes_that_add_up_never_pass_the_limits_however_many_come_at_once(live, viewer, broadcaster):
    broadcaster.post("vote_config", json={"config": {"totalVotesPerUser": 50, "votesPerOption": 50}})

    async def vote() -> int:
        async with Voter(live, viewer("U1")) as voter:
            status, _ = await voter.send("vote", {"value": 1, "count": 3})
            return status

    statuses = await asyncio.gather(*(vote() for _ in range(40)))

    assert {200: 16, 400: 24} == Counter(statuses)
    assert 48 == viewer("U1").get("vote").json()["count"]
