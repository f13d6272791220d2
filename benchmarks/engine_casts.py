"""What a cast costs in the engine: in memory and in a file, with few voters and with very many.

    python benchmarks/engine_casts.py [--voters 1000 1000000] [--rounds 7]

Each turn of the event loop casts 50 marks at once, as a busy service does, each answered with its tally of 199 choices.
Rounds are interleaved; only ratios of one run mean anything.
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
AT_ONCE, TURNS = 50, 200


@dataclass
class Subject:
    medium: str
    voters: int
    engine: Engine
    per_cast: list[float] = field(default_factory=list)
    """µs, one for each round."""
    turns: list[float] = field(default_factory=list)
    """ms, one for each turn."""


async def cast_at_once(engine: Engine, marks: list[CastRequest], now: int, *, tally: bool) -> None:
    async with asyncio.TaskGroup() as group:
        for mark in marks:
            group.create_task(engine.ballots.cast(POLL, mark, now=now, expires_at=now + NEVER // 2, tally=tally))


async def fill(subject: Subject) -> None:
    for first in range(0, subject.voters, 1000):
        marks = [CastRequest(f"U{number}", random.choice(CHOICES)) for number in range(first, first + 1000)]
        await cast_at_once(subject.engine, marks, first, tally=False)


async def measure(subject: Subject, now: int) -> None:
    turns = []
    for turn in range(TURNS):
        marks = [CastRequest(f"U{random.randrange(subject.voters)}", random.choice(CHOICES)) for _ in range(AT_ONCE)]
        start = perf_counter()
        await cast_at_once(subject.engine, marks, now + turn, tally=True)
        turns.append(perf_counter() - start)
    subject.per_cast.append(sum(turns) / TURNS / AT_ONCE * 1e6)
    subject.turns += [turn * 1e3 for turn in turns]


async def main(voters: list[int], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        subjects = []
        for count in voters:
            for medium, url in (("memory", "sqlite://"), ("file", f"sqlite://{directory}/{count}.db")):
                engine = await open_engine(url, namespace="benchmark").__aenter__()
                subjects.append(Subject(medium, count, engine))
                await fill(subjects[-1])
        for number in range(rounds):
            for subject in subjects:
                await measure(subject, (number + 1) * 10_000_000)
        for subject in subjects:
            await subject.engine.__aexit__()
    report(subjects)


def report(subjects: list[Subject]) -> None:
    print(f"{'':8}{'voters':>10}{'µs/cast':>10}{'range':>16}{'ms/turn p50':>13}{'p99':>8}{'max':>8}")
    for each in subjects:
        low, middle, high = min(each.per_cast), statistics.median(each.per_cast), max(each.per_cast)
        turns = sorted(each.turns)
        print(
            f"{each.medium:8}{each.voters:>10,}{middle:>10.1f}{f'{low:.1f}-{high:.1f}':>16}"
            f"{turns[len(turns) // 2]:>13.2f}{turns[len(turns) * 99 // 100]:>8.2f}{turns[-1]:>8.2f}"
        )
    for count in sorted({each.voters for each in subjects}):
        per_cast = {each.medium: each.per_cast for each in subjects if each.voters == count}
        ratios = [one / two for one, two in zip(per_cast["memory"], per_cast["file"], strict=True)]
        print(f"speed of a file / of memory, {count:,} voters: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voters", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    asyncio.run(main(given.voters, given.rounds))
