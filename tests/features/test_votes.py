"""The ids of polls, and the vote log (Poll, Vote log entry; rulings P3, P6, A3, W8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from emulator.core.callers import Caller, Role
from support.service import CLIENT_ID, Client, LiveServer


def stats(client: Client, where: str = "") -> dict:
    return client.get(f"vote{where}").raise_for_status().json()["stats"]


def count(client: Client, where: str = "") -> int:
    return stats(client, where)["count"]


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


@pytest.mark.parametrize(
    "poll",
    ["a" * 65, "global-" + "a" * 58, "global-", "a.b", "a b", "a+b", "a%20b%26c", "%00", "a%00", "a%0A", "%0Aa",
     "caf%C3%A9", "%D9%A1", "%ff", "%ED%A0%80", "a/b", "..", "%2e%2e", "a'--", "*"],
)  # fmt: skip
def test_an_invalid_poll_id_is_refused(broadcaster, poll):
    for method, body in (("GET", b""), ("POST", b'{"value":3}'), ("DELETE", b"")):
        answer = broadcaster.request(method, f"vote?id={poll}", content=body)

        assert (400, "Invalid poll id") == reason(answer)


@pytest.mark.parametrize("poll", ["globalx", "global_x", "Global-x", "GLOBAL-x", "x-global-"])
def test_only_the_exact_prefix_makes_a_poll_global(viewer, poll):
    viewer().post(f"vote?id={poll}", json={"value": 3}).raise_for_status()

    assert 0 == count(viewer(channel="888"), f"?id={poll}")


# The vote log


def cast(client: Client, value: int, where: str = "") -> None:
    client.post(f"vote{where}", json={"value": value}).raise_for_status()


def log(client: Client, where: str = "") -> list[dict]:
    return client.get(f"vote_logs{where}").raise_for_status().json()["result"]


@pytest.fixture
def crowd(live: LiveServer) -> Callable[[int], None]:
    """`crowd(2_000)` makes that many users vote once in channel 777, a hundred per millisecond."""

    async def vote(voters: int) -> None:
        run = live.service.dispatcher.run_as
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
def test_a_log_stays_readable_if_the_poll_is_cleared_meanwhile(crowd, admin, broadcaster):
    crowd(2_000)

    with admin.stream("GET", "vote_logs") as answer:
        broadcaster.delete("vote")
        answer.read()

    assert answer.json()["result"] == sorted(answer.json()["result"], key=lambda vote: vote["timestamp"])
    assert [] == log(admin)
