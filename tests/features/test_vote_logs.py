"""The vote log: contents, order and streaming (Vote log entry; rulings P3, A3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event, Thread

import pytest

from emulator.core.callers import Caller, Role
from support.service import CLIENT_ID, Client, LiveServer


def cast(client: Client, value: int, where: str = "") -> None:
    client.post(f"vote{where}", json={"value": value}).raise_for_status()


def log(client: Client, where: str = "") -> list[dict]:
    return client.get(f"vote_logs{where}").raise_for_status().json()["result"]


@pytest.fixture
def crowd(live: LiveServer) -> Callable[[int], None]:
    """`crowd(20_000)` makes that many users vote once in channel 777, a hundred per millisecond."""

    async def vote(voters: int) -> None:
        run = live.service.dispatcher.run
        for first in range(0, voters, 100):
            live.service.clock.advance(1)
            hundred = [_voter(number) for number in range(first, first + 100)]
            vote = b'{"value":%d}' % (first // 100 % 64)
            await asyncio.gather(*(run("POST", "/v1/e/vote", voter, {}, vote) for voter in hundred))

    live.freeze()
    return lambda voters: live.run(vote(voters))


def _voter(number: int) -> Caller:
    return Caller(CLIENT_ID, Role.VIEWER, "777", str(number), f"U{number}")


def test_a_log_of_shared_ids_is_the_same_bytes_as_one_with_an_unshared_id(live, viewer, admin):
    live.freeze()
    for user in ("5551", '55"\u00e4\u20ac'):
        cast(viewer(user), -3)
    joined = admin.get("vote_logs").content
    cast(viewer(None, opaque="Aabc"), 5)

    assert admin.get("vote_logs").content.startswith(joined[: -len(b"]}")] + b',{"identifier":"Aabc"')


@pytest.mark.slow
def test_a_log_of_20_000_votes_is_complete_while_users_keep_voting(live, crowd, admin, viewer):
    crowd(20_000)
    again, enough = [viewer(str(number)) for number in (0, 9_999, 19_999)], Event()

    def vote_again() -> None:
        while not enough.is_set():
            for client in again:
                live.service.clock.advance(1)
                cast(client, 99)

    busy = Thread(target=vote_again)
    busy.start()
    logs = [log(admin) for _ in range(3)]
    enough.set()
    busy.join()

    for votes in logs:
        assert {str(number) for number in range(20_000)} == {vote["identifier"] for vote in votes}
        assert 20_000 == len(votes)
        assert [vote["timestamp"] for vote in votes] == sorted(vote["timestamp"] for vote in votes)
        assert all(vote["value"] in (99, int(vote["identifier"]) // 100 % 64) for vote in votes)


@pytest.mark.slow
def test_a_log_stays_readable_if_the_poll_is_cleared_meanwhile(crowd, admin, broadcaster):
    crowd(5_000)

    with admin.stream("GET", "vote_logs") as answer:
        broadcaster.delete("vote")
        answer.read()

    assert answer.json()["result"] == sorted(answer.json()["result"], key=lambda vote: vote["timestamp"])
    assert [] == log(admin)
