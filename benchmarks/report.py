"""Results of benchmarks: a row per ratio, printed as a table and stored as JSON.

A measurement is a function `(rounds, seconds) -> list[Row]`, listed in `run.py`. It measures the service and its
references in turn, in `rounds` rounds after a warm-up, for `seconds` each where a rate is measured.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

RESULTS = Path(__file__).with_name("results")
MEASUREMENTS = Path(__file__).with_name("measurements.json")
"""The measurements that the documents show."""
HEADROOM = 3.0
"""Times the fastest server's rate that a load generator must reach."""


@dataclass(frozen=True)
class Row:
    """One ratio of a goal."""

    goal: str
    """Number of the goal, such as `1b`."""
    name: str
    """What is divided by what: `POST vote, new tokens / plain`."""
    values: Sequence[float]
    """The ratio in each round."""
    noise: Sequence[float]
    """The reference divided by itself, measured twice per round. Empty for exact counts."""
    must: float | None
    """None for a row without a goal."""
    stretch: float | None
    higher_is_better: bool = True
    figures: Mapping[str, float] = field(default_factory=dict)
    """Medians of absolute measurements by name and unit, such as `{"service votes/s": 7000}`."""
    warning: str = ""
    """Why the ratio cannot be trusted, such as `generator bound`."""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        """`met`, `not met`, or `within noise` if the noise is larger than the distance to the must; empty without one.

        The noise is the median distance of `noise` from 1.
        """
        if self.must is None:
            return ""
        noise = statistics.median(abs(each - 1) for each in self.noise) if self.noise else 0.0
        distance = self.median - self.must if self.higher_is_better else self.must - self.median
        if noise and abs(distance) <= noise * self.must:
            return "within noise"
        return "met" if distance >= 0 else "not met"


Measurement = Callable[[int, float], list[Row]]


class Machine(msgspec.Struct):
    """Where a measurement ran."""

    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    commit: str

    @classmethod
    def here(cls) -> Machine:
        lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        commit = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
        return cls(
            processor=next(iter(models), platform.processor()),
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            commit=subprocess.run(commit, capture_output=True, text=True, check=False).stdout.strip(),
        )


class Result(msgspec.Struct):
    """One run of a measurement, as stored in `results/NAME.json`."""

    name: str
    day: str
    """UTC, such as `2026-01-31`."""
    machine: Machine
    rows: list[Row]


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Format the median and range."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Divide the results of two servers round by round."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def bound(echo: Sequence[float], *servers: Sequence[float]) -> str:
    """Return the warning of a row: empty if the echo's median rate is 3 times the rate of the row's fastest server."""
    headroom = statistics.median(echo) / max(map(statistics.median, servers))
    return "" if headroom >= HEADROOM else f"generator bound: {headroom:.1f} times the fastest server"


def number(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"{sign}{value:g}"


def rounded(value: float, digits: int = 2) -> str:
    """Format a number with this many significant digits, and without an exponent."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def show(rows: Iterable[Row]) -> None:
    """Print a table of rows."""
    shown = list(rows)
    width = max(len(row.name) for row in shown) + 2
    print(f"{'goal':6}{'ratio':{width}}{'median (range)':22}{'noise':20}{'must':>6}{'stretch':>9}  verdict")
    for row in shown:
        sign = "" if row.higher_is_better else "≤"
        noise = spread(row.noise) if row.noise else ""
        print(
            f"{row.goal:6}{row.name:{width}}{spread(row.values):22}{noise:20}"
            f"{number(row.must, sign):>6}{number(row.stretch, sign):>9}  {row.verdict}"
        )
        if row.warning:
            print(f"      {row.warning}")
        if row.figures:
            print("      " + ", ".join(f"{name} {rounded(value, 3)}" for name, value in row.figures.items()))


def store(name: str, rows: list[Row]) -> None:
    """Write `results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    result = msgspec.json.encode(Result(name, f"{datetime.now(UTC):%Y-%m-%d}", Machine.here(), rows))
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(result, indent=1) + b"\n")


def stored() -> list[Result]:
    """Return all stored results, by name."""
    return [msgspec.json.decode(path.read_bytes(), type=Result) for path in sorted(RESULTS.glob("*.*.json"))]


def load_measurements() -> list[Result]:
    """Return the measurements that the documents show."""
    return msgspec.json.decode(MEASUREMENTS.read_bytes(), type=list[Result]) if MEASUREMENTS.exists() else []


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by the number of their goal; rows of other measurements are last."""

    def key(row: Row) -> tuple[int, str]:
        digits = row.goal.rstrip("b")
        return (int(digits), row.goal) if digits.isdigit() else (1_000, row.goal)

    return sorted(rows, key=key)


def main(*measurements: Measurement, rounds: int = 5, seconds: float = 2.0) -> None:
    """Run measurements from the command line: `python benchmarks/SCRIPT.py [ROUNDS] [SECONDS]`."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else rounds
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else seconds
    for measure in measurements:
        show(measure(rounds, seconds))
