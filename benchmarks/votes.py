"""POST vote against references: `python benchmarks/votes.py [ROUNDS] [SECONDS]`.

The service runs in production mode with its data in a file and everything checked. The references are `plain`, `bare`
and the service in memory (see `servers.py`). Goals 1, 1s, 1b, 2, 3 and 4.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from functools import partial
from itertools import count
from operator import length_hint

import report
import uvloop
from audience import PREPARED_PER_SECOND, Newcomers, ballots, headers, voter_of
from common import start_server
from large_poll import read_log, rows_of
from load import load
from report import Row
from rounds import Case, laboratory, measure

CACHED_TOKENS = 65_536
"""Tokens that the service keeps as verified."""
KILLS = 5


def known_voters(rounds: int, seconds: float) -> list[Row]:
    """Votes of 1,000 users whose tokens the service has seen before."""
    requests, references = ballots(), ["plain", "bare", "memory"]
    with laboratory() as (stack, folder):
        names = [*references, "file"]
        cases = {name: Case([start_server(stack, name, folder / "data.db")], requests) for name in names}
        results = measure(stack, cases, rounds, seconds, again=references)
    vote = "POST vote, known tokens"
    return [
        results.rate_row("1b", f"{vote} / plain route", "file", "plain", 3.5, 4.5),
        results.rate_row("2", f"{vote} / bare ASGI", "file", "bare", 0.7, 0.9),
        results.rate_row("3", f"{vote}, data in a file / in memory", "file", "memory", 0.85, 0.95),
        results.tail_row("4", f"p99 of {vote} / plain route", "file", "plain", 0.7, 0.4),
    ]


def new_voters(rounds: int, seconds: float) -> list[Row]:
    """Votes of users who come once: each request has a new token and a new voter, each round a new poll."""
    newcomers, polls = Newcomers(), count()

    def requests() -> Iterator[bytes]:
        return newcomers.round(seconds, f"poll-{next(polls)}")

    with laboratory() as (stack, folder):
        names = {"plain": "plain", "file": "file", "many seen": "file", "sandbox": "sandbox file"}
        started = {name: start_server(stack, server, folder / f"{name}.db") for name, server in names.items()}
        seen = load([started["many seen"].address], iter(newcomers.ballots(CACHED_TOKENS)), seconds=300)
        assert not uvloop.run(seen).failed, "votes were refused"
        cases = {name: Case([server], requests) for name, server in started.items()}
        results = measure(stack, cases, rounds, seconds, again=["plain", "file"])
    vote = "POST vote, new tokens"
    return [
        results.rate_row("1s", f"{vote}, in the sandbox / in production", "sandbox", "file", 0.9, 1.0),
        results.rate_row("1", f"{vote} / plain route", "file", "plain", 2.5, 3.2),
        results.rate_row("1", f"{vote}, more than 65,536 seen / plain route", "many seen", "plain", 2.5, 3.2),
        results.tail_row("4", f"p99 of {vote} / plain route", "file", "plain", 0.7, 0.4),
        results.tail_row("4", f"p99 of {vote}, more than 65,536 seen / plain", "many seen", "plain", 0.7, 0.4),
    ]


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
        for _ in range(KILLS):
            server = start_server(stack, "file", folder / "data.db")
            ballots = newcomers.ballots(PREPARED_PER_SECOND)
            unsent = iter(ballots)
            kill = partial(os.kill, server.process, signal.SIGKILL)
            asyncio.get_running_loop().call_later(generator.uniform(0.3, 1.0), kill)
            measured = await load([server.address], unsent, seconds=60)
            sent = ballots[: len(ballots) - length_hint(unsent)]
            acknowledged |= {voter_of(each) for each in set(sent).difference(measured.unanswered)}
        server = start_server(stack, "file", folder / "data.db")
        _, log = await read_log(server.address, backend, poll="poll")
    return acknowledged, {str(row["identifier"]) for row in rows_of(log)}


if __name__ == "__main__":
    report.main(new_voters, known_voters, losses)
