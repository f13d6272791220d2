"""What the journal costs a sandbox: `python benchmarks/journal.py [ROUNDS] [SECONDS] [REQUESTS]`.

Votes of 1,000 users in one poll, with a journal of 16 MiB and without one, measured in turn: votes per second, their
latency, and the processor time of the service for each. Then the memory of the service with a journal after each tenth
of `REQUESTS` votes, a million by default; it is full after the first.
"""

from __future__ import annotations

import itertools

import report
import uvloop
from audience import ballots
from common import argument, memory, start_server
from load import load
from report import Row
from rounds import Case, laboratory, measure

WITH, WITHOUT = "journal", "no journal"
SIZES = {WITH: 16 * 1024 * 1024, WITHOUT: 0}
STEPS = 10


def rates(rounds: int, seconds: float) -> list[Row]:
    """Compare votes per second, their latency, and the processor time of each."""
    requests = ballots()
    with laboratory() as (stack, _):
        cases = {name: Case([start_server(stack, "sandbox", size)], requests) for name, size in SIZES.items()}
        results = measure(stack, cases, rounds, seconds, again=[WITHOUT])
    vote = "POST vote with a journal / without"
    return [
        results.rate_row("journal", vote, WITH, WITHOUT, 0.9, 0.95),
        results.tail_row("journal", f"p99 of {vote}", WITH, WITHOUT, 1.2, 1.1),
        results.cost_row("journal", f"processor time of {vote}", WITH, WITHOUT, 1.11, 1.05),
    ]


def growth(requests: int) -> list[Row]:
    """Compare the memory after each further tenth of the requests with that after the first."""
    prepared, sizes = itertools.cycle(ballots()), []
    with laboratory() as (stack, _):
        server = start_server(stack, "sandbox", SIZES[WITH])
        for _ in range(STEPS):
            uvloop.run(load([server.address], itertools.islice(prepared, requests // STEPS), seconds=3_600))
            sizes.append(memory(server.process))
    name = f"memory after up to {requests:,} votes / after {requests // STEPS:,}"
    figures = {"first MiB": sizes[0] / 2**20, "last MiB": sizes[-1] / 2**20}
    values = [size / sizes[0] for size in sizes[1:]]
    return [Row("journal", name, values, [], 1.1, 1.02, higher_is_better=False, figures=figures)]


if __name__ == "__main__":
    report.main(rates)
    report.show(growth(int(argument(3, 1_000_000))))
