"""Percentiles and series of a run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
"""The latencies that are reported, by name."""
_BUCKETS = 60


@dataclass(slots=True)
class Tally:
    """What became of the requests of a run, and how long they took."""

    planned: int
    sent: int
    answered: int
    refused: int
    """Answers 4xx without the planned ones, and each 429 or 503 before a repetition."""
    late: int
    """Requests after the end that were refused as closed, as planned."""
    failed: int
    """Requests without an answer, and answers 5xx."""
    unsent: int
    """Failed requests that found no connection: they were not applied."""
    repeated: int
    reopened: int
    rate: float
    """Requests in time that were sent per second, from the first planned instant to the last sending."""
    lag: float
    """The most seconds by which this program itself was late."""
    latencies: dict[str, float]
    """Seconds from the planned instant to the answer, by the names of `PERCENTILES`; empty without answers."""
    reasons: dict[str, int] = field(default_factory=dict)
    """How often each refusal came, the most frequent first."""

    def value(self, name: str) -> float | None:
        """Return a figure by its name in an expectation, latencies in ms; `None` without one."""
        if name in PERCENTILES:
            seconds = self.latencies.get(name)
            return None if seconds is None else seconds * 1000
        return float(getattr(self, name))


def percentile(ordered: Sequence[float], part: float) -> float:
    """Return the smallest value that `part` of the values do not exceed (nearest rank)."""
    return ordered[max(ceil(part * len(ordered)) - 1, 0)]


def latencies(values: Sequence[float]) -> dict[str, float]:
    """Return the latencies by the names of `PERCENTILES`; empty without values."""
    ordered = sorted(values)
    return {name: percentile(ordered, part) for name, part in PERCENTILES.items()} if ordered else {}


@dataclass(slots=True)
class Point:
    """One interval of a run."""

    at: float
    """Its start, in seconds."""
    planned: float
    """Requests per second that were due in it."""
    answered: float
    """Answers per second that came in it."""
    refused: float
    """Refusals per second, planned ones included, and failures."""
    p50: float | None
    """Latency in seconds of the requests that were due in it; `None` without answers."""
    p99: float | None
    max: float | None


def series(
    due: Sequence[float], done: Sequence[float], is_answered: Sequence[bool], refusals: Sequence[float]
) -> list[Point]:
    """Return a run in at most 60 intervals of equal length. All times are seconds from the start."""
    end = max([*due, *done, *refusals], default=0.0)
    if not end:
        return []
    width = _width(end)
    count = int(end / width) + 1
    planned, answered, refused = [0] * count, [0] * count, [0] * count
    delays: list[list[float]] = [[] for _ in range(count)]
    for at, finished, is_one in zip(due, done, is_answered, strict=True):
        bucket = int(at / width)
        planned[bucket] += 1
        if is_one:
            answered[int(finished / width)] += 1
            delays[bucket].append(finished - at)
    for at in refusals:
        refused[int(at / width)] += 1
    found = []
    for bucket, values in enumerate(delays):
        values.sort()
        found.append(
            Point(
                bucket * width,
                planned[bucket] / width,
                answered[bucket] / width,
                refused[bucket] / width,
                percentile(values, 0.5) if values else None,
                percentile(values, 0.99) if values else None,
                values[-1] if values else None,
            )
        )
    return found


def _width(end: float) -> float:
    """Return the length of an interval: 1, 2 or 5 times a power of ten, in seconds."""
    step = 0.001
    while True:
        for factor in (1, 2, 5):
            if end / (step * factor) < _BUCKETS:
                return step * factor
        step *= 10
