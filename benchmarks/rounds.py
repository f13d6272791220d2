"""Measures several servers in turn, round by round, and makes rows of their rates and latencies."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from common import Address
from load import Measured, load_all
from report import Row, bound, ratios

ECHO = "echo"
AGAIN = " again"
"""Ends the name of a case that measures a reference for the second time in a round."""


class Case(NamedTuple):
    """What is sent where in each round."""

    addresses: Sequence[Address]
    requests: Callable[[], Iterable[bytes]]
    """Called before each measurement. A collection is sent repeatedly, an iterator once."""


class Results:
    """The measurements of all cases, by name, one per round."""

    def __init__(self, measured: Mapping[str, Sequence[Measured]]) -> None:
        self._measured = measured

    def rates(self, name: str) -> list[float]:
        """Return the responses per second of each round."""
        return [each.per_second for each in self._measured[name]]

    def tails(self, name: str) -> list[float]:
        """Return the 99th percentile of the latency in each round, in ms."""
        return [each.p99 * 1e3 for each in self._measured[name]]

    def rate_row(
        self, goal: str, name: str, ours: str, reference: str, must: float | None, stretch: float | None
    ) -> Row:
        """Compare rates. The reference of a round is the mean of its two measurements."""
        return self._row(goal, name, ours, reference, must, stretch, self.rates, "per s")

    def tail_row(
        self, goal: str, name: str, ours: str, reference: str, must: float | None, stretch: float | None
    ) -> Row:
        """Compare 99th percentiles of latencies, where less is better."""
        return self._row(goal, name, ours, reference, must, stretch, self.tails, "p99 ms")

    def _row(
        self,
        goal: str,
        name: str,
        ours: str,
        reference: str,
        must: float | None,
        stretch: float | None,
        values: Callable[[str], list[float]],
        unit: str,
    ) -> Row:
        first, second = values(reference), values(reference + AGAIN)
        twice = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
        return Row(
            goal,
            name,
            ratios(values(ours), twice),
            ratios(second, first),
            must,
            stretch,
            higher_is_better=values == self.rates,
            figures={f"{each} {unit}": statistics.median(values(each)) for each in (ours, reference, ECHO)},
            warning=bound(self.rates(ECHO), self.rates(ours), self.rates(reference)),
        )


async def interleave(cases: Mapping[str, Case], rounds: int, seconds: float) -> Results:
    """Measure all cases in turn for `seconds` each, in `rounds` rounds after a warm-up. No request may fail."""
    results: dict[str, list[Measured]] = {name: [] for name in cases}
    gc.disable()  # so that the load generator never pauses
    for number in range(rounds + 1):
        for name, case in cases.items():
            requests = case.requests()
            gc.collect()
            measured = await load_all(case.addresses, requests, seconds=seconds)
            assert measured.failed == 0, f"{name}: {measured.failed} requests failed"
            if number:
                results[name].append(measured)
    return Results(results)
