"""POST vote, and other calls of large audiences, against the reference `plain` of `servers.py`.

The service runs in production mode with its data in a file and everything checked. Goals 1, 1s, 1b, 3, 4 and 13.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from itertools import count
from operator import length_hint

import uvloop
from audience import PREPARED_PER_SECOND, Newcomers, ballots, headers, voter_of
from common import start_extcli, start_server, start_service
from large_poll import read_log, rows_of
from load import load, request
from report import Row
from rounds import Case, laboratory, measure

KILLS = 5
CALLS = {
    "GET vote": ("GET", "/v1/e/vote?id=poll", b""),
    "POST rank": ("POST", "/v1/e/rank?id=colour", b'{"key":"blue"}'),
    "POST accumulate": ("POST", "/v1/e/accumulate?id=ratings", b'{"rating":5}'),
    "GET channel_state": ("GET", "/v1/e/channel_state", b""),
    "PATCH channel_state": ("PATCH", "/v1/e/channel_state", b'[{"op":"add","path":"/round","value":4}]'),
}


def known_voters(rounds: int, seconds: float) -> list[Row]:
    """Votes of 1,000 users whose tokens the service has seen before."""
    requests = ballots()
    with laboratory() as (stack, folder):
        servers = {
            "plain": start_server(stack, "plain"),
            "memory": start_service(stack, "sqlite://"),
            "file": start_service(stack, f"sqlite://{folder}/data.db"),
        }
        cases = {name: Case([server], requests) for name, server in servers.items()}
        results = measure(stack, cases, rounds, seconds, again=["plain", "memory"])
    vote = "POST vote, known tokens"
    return [
        results.row("1b", f"{vote} / plain route", "file", "plain", 3.5, 4.5),
        results.row("3", f"{vote}, data in a file / in memory", "file", "memory", 0.85, 0.95),
        results.row("4", f"p99 of {vote} / plain route", "file", "plain", 0.7, 0.4, is_tail=True),
    ]


def new_voters(rounds: int, seconds: float) -> list[Row]:
    """Votes of users who come once: each request has a new token and a new voter, each round a new poll."""
    newcomers, polls = Newcomers(), count()

    def requests() -> Iterator[bytes]:
        return newcomers.round(seconds, f"poll-{next(polls)}")

    with laboratory() as (stack, folder):
        servers = {
            "plain": start_server(stack, "plain"),
            "file": start_service(stack, f"sqlite://{folder}/data.db"),
            "sandbox": start_extcli(stack, "--data", f"sqlite://{folder}/sandbox.db"),
        }
        cases = {name: Case([server], requests) for name, server in servers.items()}
        results = measure(stack, cases, rounds, seconds, again=["plain", "file"])
    vote = "POST vote, new tokens"
    return [
        results.row("1", f"{vote} / plain route", "file", "plain", 2.5, 3.2),
        results.row("1s", f"{vote}, in the sandbox / in production", "sandbox", "file", 0.9, 1.0),
        results.row("4", f"p99 of {vote} / plain route", "file", "plain", 0.7, 0.4, is_tail=True),
    ]


def other_calls(rounds: int, seconds: float) -> list[Row]:
    """Compare the rates of other calls with the rate of POST vote on the plain route."""
    with laboratory() as (stack, folder):
        file = start_service(stack, f"sqlite://{folder}/data.db")
        cases = {"plain": Case([start_server(stack, "plain")], ballots())}
        for name, (method, path, body) in CALLS.items():
            users = headers("broadcaster" if method == "PATCH" else "viewer")
            cases[name] = Case([file], [request(method, path, user, body) for user in users])
        results = measure(stack, cases, rounds, seconds, again=["plain"])
    return [results.row("13", f"{name} / plain POST vote", name, "plain", 3.5, 4.5) for name in CALLS]


def losses(rounds: int, seconds: float) -> list[Row]:
    """Kill the service five times while a crowd votes, and look for each acknowledged vote in the log."""
    acknowledged, found = uvloop.run(_losses())
    lost = len(acknowledged - found)
    name = f"acknowledged votes lost in {KILLS} kill -9"
    return [Row("3", name, [lost], [], 0, 0, higher_is_better=False, figures={"acknowledged": len(acknowledged)})]


async def _losses() -> tuple[set[str], set[str]]:
    """Return the voters whose votes were acknowledged, and those in the log."""
    newcomers, generator = Newcomers(), random.Random(7)
    acknowledged: set[str] = set()
    (backend,) = headers("backend", users=1)
    with laboratory() as (stack, folder):
        data = f"sqlite://{folder}/data.db"
        for _ in range(KILLS):
            server = start_service(stack, data)
            ballots = newcomers.ballots(PREPARED_PER_SECOND)
            unsent = iter(ballots)
            asyncio.get_running_loop().call_later(generator.uniform(0.3, 1.0), server.process.kill)
            measured = await load([server.address], unsent, seconds=60)
            sent = ballots[: len(ballots) - length_hint(unsent)]
            acknowledged |= {voter_of(each) for each in set(sent).difference(measured.unanswered)}
            server.process.wait()
        _, log = await read_log(start_service(stack, data).address, backend, poll="poll")
    return acknowledged, {str(row["identifier"]) for row in rows_of(log)}
