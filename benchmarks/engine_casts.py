"""The cost of a vote in the engine: in memory and in a file, with few voters and with many.

    python benchmarks/engine_casts.py [--voters 1000 1000000] [--rounds 7]

Each pass of the event loop casts 50 votes at once, as a busy service does; each returns a tally of 199 choices.
Rounds are interleaved; only ratios within one run are meaningful.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
from dataclasses import dataclass, field
from time import perf_counter

from emulator.engines import open_engine
from emulator.engines.base import NEVER, CastRequest, Key
from emulator.engines.engine import Engine

POLL = Key("poll", "client", "default", "777")
CHOICES = [str(value) for value in range(-99, 100)]
BATCH, PASSES = 50, 200


@dataclass
class Case:
    storage: str
    voters: int
    engine: Engine
    per_cast: list[float] = field(default_factory=list)
    """µs, per round."""
    passes: list[float] = field(default_factory=list)
    """ms, per pass of the event loop."""


async def cast_batch(engine: Engine, casts: list[CastRequest], now: int, *, tally: bool) -> None:
    async with asyncio.TaskGroup() as group:
        for cast in casts:
            group.create_task(engine.ballots.cast(POLL, cast, now=now, expires_at=now + NEVER // 2, tally=tally))


async def fill(case: Case) -> None:
    for first in range(0, case.voters, 1000):
        casts = [CastRequest(f"U{number}", random.choice(CHOICES)) for number in range(first, first + 1000)]
        await cast_batch(case.engine, casts, first, tally=False)


async def measure(case: Case, now: int) -> None:
    passes = []
    for number in range(PASSES):
        casts = [CastRequest(f"U{random.randrange(case.voters)}", random.choice(CHOICES)) for _ in range(BATCH)]
        start = perf_counter()
        await cast_batch(case.engine, casts, now + number, tally=True)
        passes.append(perf_counter() - start)
    case.per_cast.append(sum(passes) / PASSES / BATCH * 1e6)
    case.passes += [seconds * 1e3 for seconds in passes]


async def main(voters: list[int], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        cases = []
        for count in voters:
            for storage, url in (("memory", "sqlite://"), ("file", f"sqlite://{directory}/{count}.db")):
                engine = await open_engine(url, namespace="benchmark").__aenter__()
                cases.append(Case(storage, count, engine))
                await fill(cases[-1])
        for number in range(rounds):
            for case in cases:
                await measure(case, (number + 1) * 10_000_000)
        for case in cases:
            await case.engine.__aexit__()
    report(cases)


def report(cases: list[Case]) -> None:
    print(f"{'':8}{'voters':>10}{'µs/cast':>10}{'range':>16}{'ms/pass p50':>13}{'p99':>8}{'max':>8}")
    for each in cases:
        low, middle, high = min(each.per_cast), statistics.median(each.per_cast), max(each.per_cast)
        passes = sorted(each.passes)
        print(
            f"{each.storage:8}{each.voters:>10,}{middle:>10.1f}{f'{low:.1f}-{high:.1f}':>16}"
            f"{passes[len(passes) // 2]:>13.2f}{passes[len(passes) * 99 // 100]:>8.2f}{passes[-1]:>8.2f}"
        )
    for count in sorted({each.voters for each in cases}):
        per_cast = {each.storage: each.per_cast for each in cases if each.voters == count}
        ratios = [one / two for one, two in zip(per_cast["memory"], per_cast["file"], strict=True)]
        print(f"throughput of a file / of memory, {count:,} voters: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voters", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.voters, arguments.rounds))
