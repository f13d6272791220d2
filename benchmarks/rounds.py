"""Measures several servers in turn, round by round, and makes rows of their rates, latencies and processor time."""

from __future__ import annotations

import gc
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import uvloop
from common import Started, pin_to_core, start_server
from load import Measured, load
from report import Row, compare

ECHO = "echo"
AGAIN = " again"
"""Ends the name of a case that measures a reference for the second time in a round, for `report.compare`."""
HEADROOM = 3.0
"""Times the fastest server's rate that the load generator must reach."""


class Case(NamedTuple):
    """What is sent where in each round."""

    servers: Sequence[Started]
    requests: Iterable[bytes] | Callable[[], Iterable[bytes]]
    """A function is called before each measurement. A collection is sent repeatedly, an iterator once."""
    around: Callable[[], AbstractAsyncContextManager[Sequence[Started] | None]] = nullcontext
    """Runs around each measurement; may yield servers of that round."""
    status: int = 200


class Results(dict[str, list[Measured]]):
    """The measurements of all cases, by name, one per round."""

    def row(
        self, goal: str, name: str, ours: str, reference: str, must: float, stretch: float, *, is_tail: bool = False
    ) -> Row:
        """Compare rates, or 99th percentiles of latencies, where less is better."""
        found = {name: [each.p99 * 1e3 if is_tail else each.per_second for each in self[name]] for name in self}
        unit, pair = "p99 ms" if is_tail else "per s", (ours, reference)
        row = compare(goal, name, found, pair, unit, must, stretch, higher_is_better=not is_tail)
        return replace(row, warning=self._bound(*pair))

    def _bound(self, *cases: str) -> str:
        """Return a warning if the load generator may have been the limit."""
        rates = {case: statistics.median(each.per_second for each in self[case]) for case in (ECHO, *cases)}
        headroom = rates[ECHO] / max(rates[case] for case in cases)
        return "" if headroom >= HEADROOM else f"generator bound: {headroom:.1f} times the fastest server"


@contextmanager
def laboratory(core: int | None = 1) -> Iterator[tuple[ExitStack, Path]]:
    """Run the load on one core; yield what ends the servers, and a folder for their data."""
    if core is not None:
        pin_to_core(core)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield stack, Path(folder)


def measure(
    stack: ExitStack, cases: Mapping[str, Case], rounds: int, seconds: float, *, again: Sequence[str]
) -> Results:
    """Measure all cases in turn for `seconds` each, the references twice, and the load generator.

    A round that is not counted comes first. No request may fail.
    """
    echo = Case([start_server(stack, ECHO)], next(iter(cases.values())).requests)
    every = {**cases, **{name + AGAIN: cases[name] for name in again}, ECHO: echo}
    return uvloop.run(_interleave(every, rounds, seconds))


async def _interleave(cases: Mapping[str, Case], rounds: int, seconds: float) -> Results:
    results = Results({name: [] for name in cases})
    gc.disable()  # so that the load generator never pauses
    for number in range(rounds + 1):
        for name, case in cases.items():
            requests = case.requests() if callable(case.requests) else case.requests
            gc.collect()
            async with case.around() as started:
                addresses = [each.address for each in started or case.servers]
                measured = await load(addresses, requests, seconds=seconds, status=case.status)
            assert measured.failed == 0, f"{name}: {measured.failed} requests failed"
            if number:
                results[name].append(measured)
    gc.enable()
    return results
