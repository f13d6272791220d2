"""Results of benchmarks: a row per ratio, printed as a table and stored as JSON.

A measurement is a function `(rounds, seconds) -> list[Row]`, listed in `run.py`. It measures the service and its
references in turn, in `rounds` rounds after a warm-up, for `seconds` each where a rate is measured.
"""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

RESULTS = Path(__file__).with_name("results")


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
    must: float
    stretch: float
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
        """`met`, `not met`, or `within noise` if the noise is larger than the distance to the must.

        The noise is the median distance of `noise` from 1.
        """
        noise = statistics.median(abs(each - 1) for each in self.noise) if self.noise else 0.0
        distance = self.median - self.must if self.higher_is_better else self.must - self.median
        if noise and abs(distance) <= noise * self.must:
            return "within noise"
        return "met" if distance >= 0 else "not met"


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
        models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        commit = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
        return cls(
            processor=models[0] if models else platform.processor(),
            cores=len(os.sched_getaffinity(0)),
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


def spread(values: Sequence[float]) -> str:
    """Format the median and range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def ratios(ours: Iterable[float], theirs: Iterable[float]) -> list[float]:
    """Divide the results of two servers round by round."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def compare(
    goal: str,
    name: str,
    found: Mapping[str, Sequence[float]],
    pair: tuple[str, str],
    unit: str,
    must: float,
    stretch: float,
    *,
    higher_is_better: bool = False,
) -> Row:
    """Compare two servers, `pair`, in each round. The second is the reference.

    The reference is measured twice in a round, the second time as `REFERENCE again`, and counts with the mean.
    """
    ours, reference = pair
    first, second = found[reference], found[f"{reference} again"]
    means = [statistics.mean(both) for both in zip(first, second, strict=True)]
    figures = {f"{each} {unit}": statistics.median(found[each]) for each in pair}
    return Row(goal, name, ratios(found[ours], means), ratios(second, first), must, stretch, higher_is_better, figures)


def show(rows: Sequence[Row]) -> None:
    """Print a table of rows."""
    width = max(len(row.name) for row in rows) + 2
    print(f"{'goal':6}{'ratio':{width}}{'median (range)':22}{'noise':20}{'must':>6}{'stretch':>9}  verdict")
    for row in rows:
        sign = "" if row.higher_is_better else "≤"
        noise = spread(row.noise) if row.noise else ""
        limits = f"{f'{sign}{row.must:g}':>6}{f'{sign}{row.stretch:g}':>9}"
        print(f"{row.goal:6}{row.name:{width}}{spread(row.values):22}{noise:20}{limits}  {row.verdict}")
        if row.warning:
            print(f"      {row.warning}")
        if row.figures:
            print("      " + ", ".join(f"{name} {value:,.4g}" for name, value in row.figures.items()))


def store(name: str, rows: list[Row]) -> None:
    """Write `results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    result = msgspec.json.encode(Result(name, f"{datetime.now(UTC):%Y-%m-%d}", Machine.here(), rows))
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(result, indent=1) + b"\n")
