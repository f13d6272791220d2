"""The cost of a vote in the engine: in memory and in a file, by voters who have voted before and by new ones.

    python benchmarks/engine_casts.py [--voters 1000 1000000] [--rounds 7]

Each pass of the event loop casts 50 votes at once, as a busy service does; each returns a tally of 10 choices.
`known` voters are drawn from 1,000 who have voted; `any` from all who have; `fresh` ones vote for the first time.
Rounds are interleaved. The figures are CPU time, of all threads of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
from dataclasses import dataclass, field
from time import perf_counter, process_time

from emulator.engines import open_engine
from emulator.engines.base import NEVER, CastRequest, Key
from emulator.engines.engine import Engine

POLL = Key("poll", "client", "default", "777")
CHOICES = [str(value) for value in range(10)]
BATCH, PASSES = 50, 100
VOTERS = ("known", "any", "fresh")


@dataclass
class Case:
    storage: str
    voters: int
    engine: Engine
    per_cast: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in VOTERS})
    """µs of CPU time, per round."""
    passes: list[float] = field(default_factory=list)
    """ms of real time, per pass of the event loop."""
    fresh: itertools.count[int] = field(default_factory=itertools.count)


async def cast_batch(engine: Engine, casts: list[CastRequest], now: int, *, tally: bool) -> None:
    async with asyncio.TaskGroup() as group:
        for cast in casts:
            group.create_task(engine.ballots.cast(POLL, cast, now=now, expires_at=now + NEVER // 2, tally=tally))


async def fill(case: Case) -> None:
    for first in range(0, case.voters, 1000):
        casts = [CastRequest(f"U{number}", random.choice(CHOICES)) for number in range(first, first + 1000)]
        await cast_batch(case.engine, casts, first, tally=False)


def voter(case: Case, kind: str) -> str:
    if kind == "fresh":
        return f"A{next(case.fresh) * 7919 % 99_999_989}"  # not in order
    return f"U{random.randrange(1_000 if kind == 'known' else case.voters)}"


async def measure(case: Case, kind: str, now: int) -> None:
    passes = [
        [CastRequest(voter(case, kind), random.choice(CHOICES), b"n" * 90) for _ in range(BATCH)] for _ in range(PASSES)
    ]
    cpu = process_time()
    for number, casts in enumerate(passes):
        start = perf_counter()
        await cast_batch(case.engine, casts, now + number, tally=True)
        case.passes.append((perf_counter() - start) * 1e3)
    case.per_cast[kind].append((process_time() - cpu) / PASSES / BATCH * 1e6)


async def main(voters: list[int], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        cases = []
        for count in voters:
            for storage, url in (("memory", "sqlite://"), ("file", f"sqlite://{directory}/{count}.db")):
                engine = await open_engine(url, namespace="benchmark").__aenter__()
                cases.append(Case(storage, count, engine))
                await fill(cases[-1])
        for number in range(rounds):
            for kind in VOTERS:
                for case in cases:
                    await measure(case, kind, (number + 1) * 10_000_000)
        for case in cases:
            await case.engine.__aexit__()
    report(cases)


def report(cases: list[Case]) -> None:
    print(f"{'':8}{'voters':>10}" + "".join(f"{f'µs/{kind}':>22}" for kind in VOTERS) + f"{'ms/pass':>9}{'p99':>8}")
    for each in cases:
        passes = sorted(each.passes)
        print(
            f"{each.storage:8}{each.voters:>10,}"
            + "".join(f"{spread(each.per_cast[kind]):>22}" for kind in VOTERS)
            + f"{passes[len(passes) // 2]:>9.2f}{passes[len(passes) * 99 // 100]:>8.2f}"
        )


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voters", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.voters, arguments.rounds))
