"""Measures several servers in turn, round by round, and makes rows of their rates, latencies and processor time."""

from __future__ import annotations

import gc
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import uvloop
from common import Started, pin_to_core, start_server
from load import CONNECTIONS, Measured, load
from report import Row, bound, ratios

ECHO = "echo"
AGAIN = " again"
"""Ends the name of a case that measures a reference for the second time in a round."""


class Case(NamedTuple):
    """What is sent where in each round."""

    servers: Sequence[Started]
    requests: Iterable[bytes] | Callable[[], Iterable[bytes]]
    """A function is called before each measurement. A collection is sent repeatedly, an iterator once."""
    around: Callable[[], AbstractAsyncContextManager[Sequence[Started] | None]] = nullcontext
    """Runs around each measurement; may yield servers of that round."""
    status: int = 200


class Results:
    """The measurements of all cases, by name, one per round."""

    def __init__(self, names: Iterable[str]) -> None:
        self._measured: dict[str, list[Measured]] = {name: [] for name in names}

    def add(self, name: str, measured: Measured) -> None:
        """Add a round."""
        self._measured[name].append(measured)

    def rates(self, name: str) -> list[float]:
        """Return the responses per second of each round."""
        return [each.per_second for each in self._measured[name]]

    def tails(self, name: str) -> list[float]:
        """Return the 99th percentile of the latency in each round, in ms."""
        return [each.p99 * 1e3 for each in self._measured[name]]

    def rate_row(
        self, goal: str, name: str, ours: str, reference: str, must: float | None, stretch: float | None
    ) -> Row:
        """Compare rates. The reference of a round is the mean of its two measurements, if there are two."""
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
        twice_measured = [each for each in self._measured if each.endswith(AGAIN)]
        again = reference + AGAIN if reference + AGAIN in twice_measured else twice_measured[0]
        first, second = values(again.removesuffix(AGAIN)), values(again)
        twice = values(reference)
        if again == reference + AGAIN:
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


@contextmanager
def laboratory(core: int | None = 1) -> Iterator[tuple[ExitStack, Path]]:
    """Run the load on one core; yield what ends the servers, and a folder for their data."""
    if core is not None:
        pin_to_core(core)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield stack, Path(folder)


def measure(
    stack: ExitStack,
    cases: Mapping[str, Case],
    rounds: int,
    seconds: float,
    *,
    again: Sequence[str],
    connections: int = CONNECTIONS,
) -> Results:
    """Measure all cases in turn for `seconds` each, the references twice, and the load generator.

    A round that is not counted comes first. No request may fail.
    """
    echo = Case([start_server(stack, ECHO)], next(iter(cases.values())).requests)
    every = {**cases, **{name + AGAIN: cases[name] for name in again}, ECHO: echo}
    return uvloop.run(_interleave(every, rounds, seconds, connections))


async def _interleave(cases: Mapping[str, Case], rounds: int, seconds: float, connections: int) -> Results:
    results = Results(cases)
    gc.disable()  # so that the load generator never pauses
    for number in range(rounds + 1):
        for name, case in cases.items():
            requests = case.requests() if callable(case.requests) else case.requests
            gc.collect()
            async with case.around() as started:
                servers = started or case.servers
                addresses = [each.address for each in servers]
                measured = await load(addresses, requests, connections=connections, seconds=seconds, status=case.status)
            assert measured.failed == 0, f"{name}: {measured.failed} requests failed"
            if number:
                results.add(name, measured)
    gc.enable()
    return results
