"""What the journal costs a sandbox: `python benchmarks/journal.py [ROUNDS] [SECONDS] [REQUESTS]`.

Votes of 1,000 users in one poll, with a journal of 16 MiB and without one, measured in turn: votes per second, their
latency, and the processor time of the service for each. Then the memory of the service with a journal after each tenth
of `REQUESTS` votes, a million by default; it is full after the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import report
import uvloop
from audience import ballots
from common import Address, argument, pin_to_core, processor_time, start_server
from load import load
from report import Row, ratios
from rounds import AGAIN, ECHO, Case, Results, interleave

WITH, WITHOUT = "journal", "no journal"
SIZES = {WITH: 16 * 1024 * 1024, WITHOUT: 0}
STEPS = 10


def rates(rounds: int, seconds: float) -> list[Row]:
    """Compare votes per second and their latency."""
    results = uvloop.run(_rates(rounds, seconds))
    vote = "POST vote with a journal / without"
    return [
        results.rate_row("journal", vote, WITH, WITHOUT, 0.9, 0.95),
        results.tail_row("journal", f"p99 of {vote}", WITH, WITHOUT, 1.2, 1.1),
    ]


async def _rates(rounds: int, seconds: float) -> Results:
    pin_to_core(1)
    requests = ballots()
    with ExitStack() as stack:
        cases = {
            name: Case([start_server(stack, "sandbox", size)[0]], lambda: requests) for name, size in SIZES.items()
        }
        cases[WITHOUT + AGAIN] = cases[WITHOUT]
        cases[ECHO] = Case([start_server(stack, ECHO)[0]], lambda: requests)
        return await interleave(cases, rounds, seconds)


def processor(rounds: int, seconds: float) -> list[Row]:
    """Compare the processor time of a vote. Other processes on a loaded machine change it less than a rate."""
    costs = uvloop.run(_processor(rounds, seconds))
    name = "processor time of a vote with a journal / without"
    noise = ratios(costs[WITHOUT + AGAIN], costs[WITHOUT])
    figures = {f"{each} µs": sorted(costs[each])[len(costs[each]) // 2] for each in SIZES}
    values = ratios(costs[WITH], costs[WITHOUT])
    return [Row("journal", name, values, noise, 1.11, 1.05, higher_is_better=False, figures=figures)]


async def _processor(rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return the microseconds of processor time for each vote, by server and round."""
    pin_to_core(1)
    requests = ballots()
    with ExitStack() as stack:
        started = {name: start_server(stack, "sandbox", size) for name, size in SIZES.items()}
        started[WITHOUT + AGAIN] = started[WITHOUT]
        costs: dict[str, list[float]] = {name: [] for name in started}
        for number in range(rounds + 1):
            for name, (address, process) in started.items():
                before = processor_time(process)
                measured = await load(*address, requests, seconds=seconds)
                if number:
                    answers = measured.per_second * seconds
                    costs[name].append((processor_time(process) - before) / answers * 1e6)
        return costs


def memory(requests: int) -> list[Row]:
    """Compare the memory after each further tenth of the requests with that after the first."""
    sizes = uvloop.run(_memory(requests))
    name = f"memory after up to {requests:,} votes / after {requests // STEPS:,}"
    figures = {"first MiB": sizes[0] / 2**20, "last MiB": sizes[-1] / 2**20}
    values = [size / sizes[0] for size in sizes[1:]]
    return [Row("journal", name, values, [], 1.1, 1.02, higher_is_better=False, figures=figures)]


async def _memory(requests: int) -> Sequence[int]:
    """Return the resident memory of the service after each tenth, in bytes."""
    pin_to_core(1)
    prepared = ballots()
    sizes = []
    with ExitStack() as stack:
        address, process = start_server(stack, "sandbox", SIZES[WITH])
        for _ in range(STEPS):
            await _send(address, prepared, requests // STEPS)
            sizes.append(resident(process))
    return sizes


async def _send(address: Address, prepared: Sequence[bytes], requests: int) -> None:
    sent = iter(prepared * (requests // len(prepared) + 1))
    await load(*address, islice(sent, requests), seconds=3_600)


def resident(process: int) -> int:
    """Return the resident memory of a process, in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found
    return int(found[1]) * 1024


if __name__ == "__main__":
    report.main(rates, processor)
    report.show(memory(int(argument(3, 1_000_000))))
