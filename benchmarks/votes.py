"""POST vote against references: `python benchmarks/votes.py [ROUNDS] [SECONDS]`.

The service runs in production mode with its data in a file and everything checked. The references are `plain`, `bare`
and the service in memory (see `servers.py`). Goals 1, 1b, 2, 3 and 4.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from operator import length_hint
from pathlib import Path

import report
import uvloop
from audience import PREPARED_PER_SECOND, Newcomers, ballots, headers, voter_of
from common import pin_to_core, start_server
from large_poll import read_log, rows_of
from load import load
from report import Row
from rounds import AGAIN, ECHO, Case, Results, interleave

CACHED_TOKENS = 65_536
"""Tokens that the service keeps as verified."""
KILLS = 5


def known_voters(rounds: int, seconds: float) -> list[Row]:
    """Votes of 1,000 users whose tokens the service has seen before."""
    results = uvloop.run(_known_voters(rounds, seconds))
    vote = "POST vote, known tokens"
    return [
        results.rate_row("1b", f"{vote} / plain route", "file", "plain", 3.0, 4.0),
        results.rate_row("2", f"{vote} / bare ASGI", "file", "bare", 0.5, 0.7),
        results.rate_row("3", f"{vote}, data in a file / in memory", "file", "memory", 0.8, 0.95),
        results.tail_row("4", f"p99 of {vote} / plain route", "file", "plain", 1.0, 0.6),
    ]


async def _known_voters(rounds: int, seconds: float) -> Results:
    pin_to_core(1)
    requests = ballots()
    names = ["plain", "bare", "memory", "file"]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        started = {name: start_server(stack, name, Path(folder) / "data.db")[0] for name in [*names, ECHO]}
        again = {name + AGAIN: started[name] for name in ("plain", "bare", "memory")}
        cases = {name: Case([address], lambda: requests) for name, address in {**started, **again}.items()}
        return await interleave(cases, rounds, seconds)


def new_voters(rounds: int, seconds: float) -> list[Row]:
    """Votes of users who come once: each request has a new token and a new voter, each round a new poll."""
    results = uvloop.run(_new_voters(rounds, seconds))
    vote = "POST vote, new tokens"
    return [
        results.rate_row("1", f"{vote} / plain route", "file", "plain", 2.0, 3.0),
        results.rate_row("1", f"{vote}, more than 65,536 seen / plain route", "many seen", "plain", 2.0, 3.0),
        results.tail_row("4", f"p99 of {vote} / plain route", "file", "plain", 1.0, 0.6),
        results.tail_row("4", f"p99 of {vote}, more than 65,536 seen / plain", "many seen", "plain", 1.0, 0.6),
    ]


async def _new_voters(rounds: int, seconds: float) -> Results:
    pin_to_core(1)
    newcomers, polls = Newcomers(), count()

    def requests() -> Iterator[bytes]:
        return newcomers.round(seconds, f"poll-{next(polls)}")

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        names = {"plain": "plain", "file": "file", "many seen": "file", ECHO: ECHO}
        started = {name: start_server(stack, server, Path(folder) / f"{name}.db")[0] for name, server in names.items()}
        seen = await load(*started["many seen"], iter(newcomers.ballots(CACHED_TOKENS)), seconds=300)
        assert seen.failed == 0, f"{seen.failed} votes were refused"
        cases = {name: Case([address], requests) for name, address in started.items()}
        return await interleave({**cases, "plain" + AGAIN: cases["plain"]}, rounds, seconds)


def losses(rounds: int, seconds: float) -> list[Row]:
    """Kill the service five times while a crowd votes, and look for each acknowledged vote in the log."""
    acknowledged, found = uvloop.run(_losses())
    lost = len(acknowledged - found)
    name = f"acknowledged votes lost in {KILLS} kill -9"
    return [Row("3", name, [lost], [], 0, 0, higher_is_better=False, figures={"acknowledged": len(acknowledged)})]


async def _losses() -> tuple[set[str], set[str]]:
    """Return the voters whose votes were acknowledged, and those in the log."""
    pin_to_core(1)
    newcomers, generator = Newcomers(), random.Random(7)
    acknowledged: set[str] = set()
    (backend,) = headers("backend", users=1)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(KILLS):
            with ExitStack() as stack:
                address, process = start_server(stack, "file", Path(folder) / "data.db")
                ballots = newcomers.ballots(PREPARED_PER_SECOND)
                unsent = iter(ballots)
                asyncio.get_running_loop().call_later(generator.uniform(0.3, 1.0), os.kill, process, signal.SIGKILL)
                measured = await load(*address, unsent, seconds=60)
                sent = ballots[: len(ballots) - length_hint(unsent)]
                acknowledged |= {voter_of(each) for each in set(sent).difference(measured.unanswered)}
        with ExitStack() as stack:
            address, _ = start_server(stack, "file", Path(folder) / "data.db")
            _, log = await read_log(*address, backend, poll="poll")
    return acknowledged, {str(row["identifier"]) for row in rows_of(log)}


if __name__ == "__main__":
    report.main(new_voters, known_voters, losses)
