"""Expectations of a simulation, such as `p99<50ms`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from extcli.errors import UsageError, shortened
from extcli.simulate.outcome import PERCENTILES, Tally

_NAMES = (*PERCENTILES, "rate", "sent", "answered", "refused", "failed")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_TEXT = re.compile(r"\s*([a-z0-9.]+)\s*(<=|>=|==|<|>)\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(us|ms|s|/s|/min)?\s*")
_TIMES = {"us": 0.001, "ms": 1.0, "s": 1000.0}
_RATES = {None: 1.0, "/s": 1.0, "/min": 1 / 60}


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure, a comparison and a limit; latencies in ms, the rate per second."""

    text: str
    name: str
    comparison: str
    limit: float

    def is_met(self, tally: Tally) -> bool:
        """Return whether the run meets the expectation. A latency is not met if no response arrived."""
        found = tally.value(self.name)
        return found is not None and _COMPARISONS[self.comparison](found, self.limit)

    def found(self, tally: Tally) -> str:
        """Return the figure as text, with its unit."""
        value = tally.value(self.name)
        if value is None:
            return "no response"
        if self.name in PERCENTILES:
            return f"{value:,.1f} ms"
        return f"{value:,.1f}/s" if self.name == "rate" else f"{value:,.0f}"


def parse(text: str) -> Expectation:
    """Parse an expectation. Raises `UsageError` that names what is allowed."""
    found = _TEXT.fullmatch(text)
    name = found[1].replace("p99.9", "p999") if found else ""
    if found is None or name not in _NAMES:
        raise _invalid(text, f"it is NAME, one of {' '.join(_COMPARISONS)}, and a number")
    unit = found[4]
    if name in PERCENTILES:
        if unit not in _TIMES:
            raise _invalid(text, f"{name} is a time: give its limit in us, ms or s")
        factor = _TIMES[unit]
    elif name == "rate":
        if unit not in _RATES:
            raise _invalid(text, "rate is requests per second: give its limit as 500/s")
        factor = _RATES[unit]
    else:
        if unit is not None:
            raise _invalid(text, f"{name} is a number of requests: give its limit without a unit")
        factor = 1.0
    return Expectation(text.strip(), name, found[2], float(found[3]) * factor)


def _invalid(text: str, why: str) -> UsageError:
    return UsageError(
        f"--expect: {shortened(text, 40)!r} is not an expectation",
        why=why,
        fix=f"write it like 'p99<50ms' or 'refused==0'; names: {' '.join(_NAMES)}",
    )
