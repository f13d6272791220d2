"""The result of a simulation: expectations, JSON, table, the HTML report with charts, and the error at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, itemgetter, le, lt
from pathlib import Path

from extcli import atomic_file
from extcli.errors import CliError, ExpectationFailed, Unreachable, UsageError, shortened
from extcli.output.columns import Column, build_table, int_column
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import field, visible
from extcli.output.terminal import bar
from extcli.output.views import stack
from extcli.reading import Json
from extcli.session import Session
from extcli.simulate.outcome import PERCENTILES, Comparison, Verdict, round_up_to_step
from extcli.simulate.plan import Pace

_COMPARISONS = {"<": lt, "<=": le, "==": eq, ">=": ge, ">": gt}
_EXPECTATION = re.compile(r"\s*([a-z0-9]+)\s*(<=|>=|==|<|>)\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(us|ms|s|/s|/min|)\s*")
_LIMIT_UNITS: Mapping[str, Mapping[str, float]] = {
    **{name: {"us": 0.001, "ms": 1.0, "s": 1000.0} for name in PERCENTILES},
    "rate": {"": 1.0, "/s": 1.0, "/min": 1 / 60},
    **{name: {"": 1.0} for name in ("sent", "answered", "refused", "failed")},
}
"""The figures that can be expected, and the units of their limits: a latency is in ms, the rate per second."""


Expectation = Callable[[Mapping[str, float]], Json]
"""Compares the figures and latencies of a run with a limit. Returns whether they meet it, and what was found, as
`-o json` prints it.
"""


def parse_expectation(text: str) -> Expectation:
    """Parse an expectation. Raises `UsageError` that names what is allowed.

    A latency is not met if no response arrived.
    """
    found = _EXPECTATION.fullmatch(text)
    name, sign, limit, unit = found.groups() if found else ("", "", "", "")
    if unit not in _LIMIT_UNITS.get(name, ()):
        raise UsageError(
            f"--expect: {shortened(text, 40)!r} is not an expectation",
            why="it needs a name, a comparison and a limit: a latency in us, ms or s, the rate in /s or /min",
            fix=f"write it like 'p99<50ms' or 'refused==0'; names: {' '.join(_LIMIT_UNITS)}",
        )
    limit_in_unit = float(limit) * _LIMIT_UNITS[name][unit]

    def check(figures: Mapping[str, float]) -> Json:
        value = figures.get(name)
        if value is None:
            return {"text": text.strip(), "met": False, "found": "no response"}
        shown = f"{value:,.1f} ms" if name in PERCENTILES else f"{value:,.0f}"
        shown = f"{value:,.1f}/s" if name == "rate" else shown
        return {"text": text.strip(), "met": _COMPARISONS[sign](value, limit_in_unit), "found": shown}

    return check


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


def report_result(session: Session, options: Options, about: Json, comparison: Comparison, facts: Json) -> None:
    """Print the result of a simulation and write its HTML report.

    `about` has the names and texts of the run: which simulation of what, its seed, and what it promised. `facts` are
    what `run_facts` returns. Raises an error if the result differs from the plan or from what is expected.
    """
    measures = {**facts["figures"], **facts["latencies"]}
    expectations = [check(measures) for check in options.expectations]
    found = {
        **about,
        "verdict": comparison.verdict,
        "undecided": comparison.undecided,
        "faults": list(comparison.faults),
        "counts": [{"name": each.name, "planned": each.planned, "found": each.found} for each in comparison.counts],
        "expectations": expectations,
        **facts,
    }
    session.output.show_value(found, RESULT_VIEW)
    if options.report is not None:
        atomic_file.replace_text(options.report, _html_report(found))
        session.output.note(f"report: {options.report}")
    unmet = [f"not met: {each['text']} (found {each['found']})" for each in expectations if not each["met"]]
    _raise_if_failed(about, comparison, unmet)


_UNCERTAIN_ITEMS = {"buffer": "entries", "event": "deliveries"}
"""What may be undecided, if it is not users."""


def _raise_if_failed(about: Json, comparison: Comparison, unmet: Sequence[str]) -> None:
    """Raise the error that ends the command, unless the result is as planned and every expectation is met."""
    result = f"the result of {about['what']} {visible(about['id'])}"
    kind: type[CliError] = ExpectationFailed
    if comparison.verdict is Verdict.DIFFERS:
        what = f"{result} differs from the plan"
        causes = [visible(each) for each in comparison.faults] or [_cause_of_difference(comparison)]
        details = [*causes, *unmet]
    elif unmet:
        what, details = "the run does not meet --expect", list(unmet)
    elif comparison.verdict is Verdict.NOT_DECIDED:
        kind, items = Unreachable, _UNCERTAIN_ITEMS.get(about["what"], "users")
        what = f"{result} is not decided: {comparison.undecided:,} {items} are uncertain"
        details = ["requests without a response, or with 5xx, may or may not have been applied"]
    else:
        return
    raise kind(what, details=details, facts={"details": details})


def _cause_of_difference(comparison: Comparison) -> str:
    if comparison.agrees_with_responses:
        return "the result agrees with the responses: requests were refused or failed"
    return f"the result contradicts the responses: the service lost or changed requests{comparison.suspicion}"


_MOST_ROWS = 30


def _largest_count(found: Json) -> int:
    """Return the largest count, for the length of bars."""
    return max((max(each["planned"], each["found"]) for each in found["counts"]), default=0) or 1


def _as_table(found: Json) -> RenderableType:
    from rich.text import Text

    figures, most = found["figures"], _largest_count(found)
    columns = (
        Column("", "name"),
        int_column("planned"),
        int_column("found"),
        Column("", "found", text=lambda number: bar(number / most), fills=True),
        Column("", lambda each: each["planned"] != each["found"], text=lambda it: Text("differs" if it else "", "bad")),
    )
    counts = build_table(columns, found["counts"][:_MOST_ROWS])
    sums = [f"{figures[name]:,} {name}" for name in ("sent", "answered", "refused", "failed")]
    facts = [(found["requests"], ", ".join(sums))]
    if figures["late"]:
        facts.append(("late", f"{figures['late']:,} refused, as planned"))
    if figures["repeated"]:
        facts.append(("repeated", f"{figures['repeated']:,} sent again after 429 or 503 with Retry-After"))
    facts.append(("rate", f"{figures['rate']:,.1f}/s"))
    facts.append(("latency", ", ".join(f"{name} {value:,.1f} ms" for name, value in found["latencies"].items())))
    for reason, count in list(found["reasons"].items())[:5]:
        facts.append(("failed" if reason[:1] == "5" else "refused", f"{count:,} times {reason}"))
    named = build_table((Column("", itemgetter(0)), Column("", itemgetter(1))), facts)
    return stack(counts, named, f"result: {found['verdict']}")


def _as_rows(found: Json) -> Iterable[Sequence[str]]:
    yield "verdict", field(found["verdict"])
    for each in found["counts"]:
        yield "count", field(each["name"]), field(each["planned"]), field(each["found"])
    for name, value in {**found["figures"], **found["latencies"]}.items():
        yield name, field(value)
    for each in found["expectations"]:
        yield "expectation", field(each["text"]), "met" if each["met"] else "not met", field(each["found"])


RESULT_VIEW = View(table=_as_table, rows=_as_rows)
"""Plain output is `verdict`, then `count`, name, planned and found, then figures, latencies in ms, and expectations."""

_CHARTS = {
    ("Rate", "per second"): ("answered", "planned"),
    ("Latency", "ms"): ("p50", "p99", "max"),
    ("Refusals and failures", "per second"): ("refused",),
}
"""The title and the unit of each chart, and the columns of the series that it draws."""


def _html_report(found: Json) -> str:
    """Return the report as HTML, one file without script. `found` is what `-o json` prints."""
    from jinja2 import Environment, FileSystemLoader

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["shown"] = _format_value
    charts = []
    for (title, unit), columns in _CHARTS.items():
        largest = {name: max((each[name] or 0 for each in found["series"]), default=0) for name in columns}
        most = round_up_to_step(max(largest.values()))
        charts.append({"title": title, "unit": unit, "largest": largest, "most": most})
    return templates.get_template("report.html").render(found, most=_largest_count(found), charts=charts)


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
