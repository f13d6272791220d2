"""Measure the goals of docs/performance.md in turn: `make bench GOAL="1 1b" ROUNDS=5 SECONDS=2`.

Prints a table and stores each measurement in `benchmarks/results`. Each measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

from report import Row, show, store


class Source(NamedTuple):
    """A function of a script, and the goals that its rows are about."""

    script: str
    function: str
    goals: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.script}.{self.function}"


SOURCES = [
    Source("votes", "new_voters", ("1", "1s", "4")),
    Source("votes", "known_voters", ("1b", "3", "4")),
    Source("votes", "losses", ("3",)),
    Source("large_poll", "rows", ("5", "6")),
    Source("large_poll", "rows_on_redis", ("6",)),
    Source("broadcasts", "rows", ("7", "8")),
    Source("nodes", "rows", ("9",)),
    Source("codes", "rows", ("10",)),
    Source("startup", "rows", ("11",)),
    Source("peers", "rows", ("12",)),
    Source("votes", "other_calls", ("13",)),
]
SOAK = "soak.rows"
"""The measurement of goal 17, which `make soak MINUTES=60` stores."""
GOALS = list(dict.fromkeys(goal for source in SOURCES for goal in source.goals))


def measure(source: Source, rounds: int, seconds: float) -> list[Row]:
    """Run one measurement in this process."""
    rows: list[Row] = getattr(importlib.import_module(source.script), source.function)(rounds, seconds)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("goals", metavar="GOAL", nargs="*", default=GOALS, help=f"all by default: {' '.join(GOALS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement of a rate")
    arguments = parser.parse_args()
    if unknown := set(arguments.goals) - set(GOALS):
        parser.error(f"unknown goal {min(unknown)}: use {' '.join(GOALS)}")
    failed = []
    begun = time.monotonic()
    for source in SOURCES:
        if not set(arguments.goals) & set(source.goals):
            continue
        started = time.monotonic()
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
            try:
                rows = child.submit(measure, source, arguments.rounds, arguments.seconds).result()
            except Exception as error:
                failed.append(source.name)
                traceback.print_exception(error)
                continue
        store(source.name, rows)
        show([row for row in rows if row.goal in arguments.goals])
        print(f"      {source.name}: {time.monotonic() - started:.0f} s", flush=True)
    print(f"all: {(time.monotonic() - begun) / 60:.1f} minutes")
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
