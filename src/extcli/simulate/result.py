"""The result of a simulation: expectations, JSON, table, the HTML report with charts, and the error at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, itemgetter, le, lt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli import atomic_file
from extcli.errors import CliError, ExpectationFailed, Unreachable, UsageError, shortened
from extcli.output.columns import Column, grouped, table
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.terminal import bar
from extcli.output.views import stacked
from extcli.session import Session
from extcli.simulate.outcome import PERCENTILES, Comparison, Verdict, round_step
from extcli.simulate.plan import Pace

if TYPE_CHECKING:
    from rich.console import RenderableType

_COMPARISONS = {"<": lt, "<=": le, "==": eq, ">=": ge, ">": gt}
_TEXT = re.compile(r"\s*([a-z0-9.]+)\s*(<=|>=|==|<|>)\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(us|ms|s|/s|/min|)\s*")
_UNITS: Mapping[str, Mapping[str, float]] = {
    **{name: {"us": 0.001, "ms": 1.0, "s": 1000.0} for name in PERCENTILES},
    "rate": {"": 1.0, "/s": 1.0, "/min": 1 / 60},
    **{name: {"": 1.0} for name in ("sent", "answered", "refused", "failed")},
}
"""The figures that can be expected, and the units of their limits: a latency is in ms, the rate per second."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure, a comparison and a limit."""

    text: str
    name: str
    comparison: str
    limit: float

    def result(self, figures: Mapping[str, float]) -> dict[str, object]:
        """Return whether these figures and latencies meet the expectation, and what was found, for `-o json`.

        A latency is not met if no response arrived.
        """
        value = figures.get(self.name)
        if value is None:
            return {"text": self.text, "met": False, "found": "no response"}
        found = f"{value:,.1f} ms" if self.name in PERCENTILES else f"{value:,.0f}"
        found = f"{value:,.1f}/s" if self.name == "rate" else found
        return {"text": self.text, "met": _COMPARISONS[self.comparison](value, self.limit), "found": found}


def expectation(text: str) -> Expectation:
    """Parse an expectation. Raises `UsageError` that names what is allowed."""
    found = _TEXT.fullmatch(text)
    name, sign, limit, unit = found.groups() if found else ("", "", "", "")
    name = name.replace("p99.9", "p999")
    if unit not in _UNITS.get(name, ()):
        raise UsageError(
            f"--expect: {shortened(text, 40)!r} is not an expectation",
            why="it needs a name, a comparison and a limit: a latency in us, ms or s, the rate in /s or /min",
            fix=f"write it like 'p99<50ms' or 'refused==0'; names: {' '.join(_UNITS)}",
        )
    return Expectation(text.strip(), name, sign, float(limit) * _UNITS[name][unit])


@dataclass(frozen=True, slots=True)
class Options:
    """The options that all simulations share."""

    pace: Pace
    connections: int = 100
    churn: float = 0.0
    """The share of the connections that is closed and opened again per second."""
    is_production: bool = False
    adds: bool = False
    """Whether the poll, ranking or buffer may have content already."""
    expectations: Sequence[Expectation] = ()
    report: Path | None = None


def conclude(
    session: Session, options: Options, about: Mapping[str, Any], comparison: Comparison, facts: Mapping[str, Any]
) -> None:
    """Print the result of a simulation and write its HTML report.

    `about` has the names and texts of the run: which simulation of what, its seed, and what it promised. `facts` are
    what `facts_of` returns. Raises an error if the result differs from the plan or from what is expected.
    """
    measures = {**facts["figures"], **facts["latencies"]}
    expectations = [each.result(measures) for each in options.expectations]
    found = {
        **about,
        "verdict": comparison.verdict,
        "undecided": comparison.undecided,
        "faults": list(comparison.faults),
        "counts": [{"name": each.name, "planned": each.planned, "found": each.found} for each in comparison.counts],
        "expectations": expectations,
        **facts,
    }
    session.output.show_value(found, RUN)
    if options.report is not None:
        atomic_file.save(options.report, _page(found))
        session.output.note(f"report: {options.report}")
    _raise_error(
        about,
        comparison,
        [f"not met: {each['text']} (found {each['found']})" for each in expectations if not each["met"]],
    )


_SHOWN = 12
"""Figures that an error lists."""
_OPEN = {"buffer": "entries", "event": "deliveries"}
"""What is not decided, if it is not users."""


def _raise_error(about: Mapping[str, Any], comparison: Comparison, unmet: Sequence[str]) -> None:
    """Raise the error that ends the command, unless the result is as planned and every expectation is met."""
    result = f"the result of {about['what']} {visible(about['id'])}"
    wrong, more = comparison.wrong[:_SHOWN], len(comparison.wrong) - _SHOWN
    table = [f"{'':20} {'planned':>10} {'found':>10}"] if wrong else []
    table += [f"{visible(each.name)[:20]:20} {each.planned:>10,} {each.found:>10,}" for each in wrong]
    table += [f"and {more} more"] if more > 0 else []
    kind: type[CliError] = ExpectationFailed
    if comparison.verdict is Verdict.DIFFERS:
        what = f"{result} differs from the plan"
        details = [*table, *map(visible, comparison.faults), *_cause_of_difference(comparison), *unmet]
    elif unmet:
        what, details = "not as expected", list(unmet)
    elif comparison.verdict is Verdict.NOT_DECIDED:
        kind, open_ones = Unreachable, _OPEN.get(about["what"], "users")
        what = f"{result} is not decided: {comparison.undecided:,} undecided {open_ones}"
        details = [*table, "requests without a response, or with 5xx, may or may not have been applied"]
    else:
        return
    raise kind(what, details=details, facts={"details": details})


def _cause_of_difference(comparison: Comparison) -> list[str]:
    if comparison.faults:
        return []
    if comparison.agrees_with_responses:
        return ["it is what the service acknowledged: requests were refused or failed"]
    return [f"the service acknowledged something else: it lost or changed requests{comparison.suspicion}"]


_ROWS = 30


def _most(found: Mapping[str, Any]) -> int:
    """Return the largest count, for the length of bars."""
    return max((max(each["planned"], each["found"]) for each in found["counts"]), default=0) or 1


def _as_table(found: Mapping[str, Any]) -> RenderableType:
    from rich.text import Text

    figures, most = found["figures"], _most(found)
    columns = (
        Column("", "name"),
        Column("planned", text=grouped, right=True),
        Column("found", text=grouped, right=True),
        Column("", "found", text=lambda number: bar(number / most), fills=True),
        Column("", lambda each: each["planned"] != each["found"], text=lambda it: Text("differs" if it else "", "bad")),
    )
    counts = table(columns, found["counts"][:_ROWS])
    sums = [f"{figures[name]:,} {name}" for name in ("sent", "answered", "refused", "failed")]
    facts = [(found["requests"], ", ".join(sums))]
    if figures["late"]:
        facts.append(("late", f"{figures['late']:,} refused, as planned"))
    if figures["repeated"]:
        facts.append(("repeated", f"{figures['repeated']:,} after 429 or 503, as Retry-After demands"))
    facts.append(("rate", f"{figures['rate']:,.1f}/s"))
    facts.append(("latency", ", ".join(f"{name} {value:,.1f} ms" for name, value in found["latencies"].items())))
    for reason, count in list(found["reasons"].items())[:5]:
        facts.append(("failed" if reason[:1] == "5" else "refused", f"{count:,} times {reason}"))
    named = table((Column("", itemgetter(0)), Column("", itemgetter(1))), facts)
    return stacked(counts, named, f"result: {found['verdict']}")


def _as_rows(found: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    yield "verdict", field(found["verdict"])
    for each in found["counts"]:
        yield "count", field(each["name"]), field(each["planned"]), field(each["found"])
    for name, value in {**found["figures"], **found["latencies"]}.items():
        yield name, field(value)
    for each in found["expectations"]:
        yield "expectation", field(each["text"]), "met" if each["met"] else "not met", field(each["found"])


RUN = View(table=_as_table, rows=_as_rows)
"""Plain output is `verdict`, then `count`, name, planned and found, then figures, latencies in ms, and expectations."""

_CHARTS = {
    ("Rate", "per second"): ("answered", "planned"),
    ("Latency", "ms"): ("p50", "p99", "max"),
    ("Refusals and failures", "per second"): ("refused",),
}
"""The title and the unit of each chart, and the columns of the series that it draws."""


def _page(found: Mapping[str, Any]) -> str:
    """Return the report as HTML, one file without script. `found` is what `-o json` prints."""
    from jinja2 import Environment, FileSystemLoader

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["shown"] = _shown_number
    charts = []
    for (title, unit), columns in _CHARTS.items():
        largest = {name: max((each[name] or 0 for each in found["series"]), default=0) for name in columns}
        charts.append({"title": title, "unit": unit, "largest": largest, "most": round_step(max(largest.values()))})
    return templates.get_template("report.html").render(found, most=_most(found), charts=charts)


def _shown_number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
