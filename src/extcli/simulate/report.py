"""Reports a simulation: expectations such as `p99<50ms`, the JSON of `-o json`, the final error, and the HTML report.

The report is one HTML file with charts as inline SVG, which needs no script and no network.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli import atomic_file
from extcli.errors import CliError, ExitCode, UsageError, shortened
from extcli.output.columns import table_of
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import bar, stacked
from extcli.session import Session
from extcli.simulate.outcome import PERCENTILES, Comparison, Point, Tally, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

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
            return "no answer"
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


def parse_all(texts: Sequence[str] | None) -> list[Expectation]:
    """Parse the expectations of a run."""
    return [parse(text) for text in texts or []]


def _invalid(text: str, why: str) -> UsageError:
    return UsageError(
        f"--expect: {shortened(text, 40)!r} is not an expectation",
        why=why,
        fix=f"write it like 'p99<50ms' or 'refused==0'; names: {' '.join(_NAMES)}",
    )


_SHOWN = 12
"""Rows of a table in an error."""
_UNDECIDED = {"buffer": ("entry", "entries"), "event": ("delivery", "deliveries")}
"""What is undecided, if not a user: singular and plural."""


@dataclass(frozen=True, slots=True)
class About:
    """The simulated run, under the names of `-o json`."""

    simulation: str
    """The command: `crowd`, `rank`, `accumulate` or `socket`."""
    what: str
    """`poll`, `ranking`, `buffer` or `event`."""
    id: str
    requests: str
    """What was sent: `votes`, `answers`, `entries` or `broadcasts`."""
    seed: int
    viewers: int
    will: str
    """The promise that was printed before the run."""
    notes: Sequence[str] = ()


def conclude(session: Session, found: dict[str, Any], comparison: Comparison, report: Path | None) -> None:
    """Print the result of a simulation and write its HTML report.

    Raises an error if the result differs from the plan or `--expect`.
    """
    session.output.show_value(found, RUN)
    if report is not None:
        write(report, found)
        session.output.note(f"report: {report}")
    if error := error_of(found, comparison):
        raise error


def document(
    about: About,
    comparison: Comparison,
    tally: Tally,
    expectations: Sequence[Expectation],
    points: Sequence[Point],
) -> dict[str, Any]:
    """Return everything about a run, as `-o json` prints it. Latencies are in ms, times in seconds."""
    figures = {name: value for name, value in asdict(tally).items() if name not in ("latencies", "reasons", "lag")}
    figures["rate"] = round(tally.rate, 2)
    return {
        **asdict(about),
        "verdict": comparison.verdict,
        "undecided": comparison.undecided,
        "faults": list(comparison.faults),
        "counts": [{"name": each.name, "planned": each.planned, "found": each.found} for each in comparison.counts],
        "figures": figures,
        "latencies": {name: _ms(seconds) for name, seconds in tally.latencies.items()},
        "lag": _ms(tally.lag),
        "reasons": dict(tally.reasons),
        "expectations": [
            {"text": each.text, "met": each.is_met(tally), "found": each.found(tally)} for each in expectations
        ],
        "series": [_point_as_json(each) for each in points],
    }


def error_of(found: Mapping[str, Any], comparison: Comparison) -> CliError | None:
    """Return the error that ends the command; `None` if the result is as planned and every expectation is met."""
    failed = [each for each in found["expectations"] if not each["met"]]
    if comparison.verdict is Verdict.DIFFERS:
        what = f"the result of {found['what']} {visible(found['id'])} differs from the plan"
        lines = [*_table(comparison), *map(visible, comparison.faults), _cause_of_difference(comparison)]
        return NotAsPlanned(what, [*lines, *_unmet_expectations(failed)])
    if failed:
        return NotAsPlanned("not as expected", _unmet_expectations(failed))
    if comparison.verdict is Verdict.NOT_DECIDED:
        count = comparison.undecided
        one, many = _UNDECIDED.get(found["what"], ("user", "users"))
        are = f"{many} are" if count > 1 else f"{one} is"
        what = f"the result of {found['what']} {visible(found['id'])} is not decided: {count:,} {are} undecided"
        return NotAsPlanned(
            what,
            [*_table(comparison), "requests without an answer, or with 5xx, may or may not have been applied"],
            exit_code=ExitCode.UNREACHABLE,
        )
    return None


class NotAsPlanned(CliError):
    """The run was complete, but its result or its figures are not as planned or expected."""

    def __init__(self, what: str, lines: Sequence[str], *, exit_code: ExitCode = ExitCode.EXPECTATION_NOT_MET) -> None:
        super().__init__(what)
        self._lines = [line for line in lines if line]
        self.exit_code = exit_code

    def lines(self) -> list[str]:
        return [f"extcli: {self.what}", *(f"  {line}" for line in self._lines)]

    def as_json(self) -> dict[str, Any]:
        document = super().as_json()
        document["error"]["details"] = self._lines
        return document


def _table(comparison: Comparison) -> list[str]:
    """Return the figures that differ as aligned lines: what was planned, and what was found."""
    wrong = [each for each in comparison.counts if each.differs]
    rows = [("", "planned", "found")]
    rows += [(visible(each.name)[:40], f"{each.planned:,}", f"{each.found:,}") for each in wrong[:_SHOWN]]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows]
    more = len(wrong) - _SHOWN
    return [*lines, *([f"and {more} more"] if more > 0 else [])] if wrong else []


def _cause_of_difference(comparison: Comparison) -> str:
    if comparison.faults:
        return ""
    if comparison.agrees_with_responses:
        return "it is what the service acknowledged: requests were refused or failed"
    return f"the service acknowledged something else: it lost or changed requests{comparison.suspicion}"


def _unmet_expectations(failed: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"not met: {each['text']} (found {each['found']})" for each in failed]


def _point_as_json(point: Point) -> dict[str, Any]:
    times = {name: None if (value := getattr(point, name)) is None else _ms(value) for name in ("p50", "p99", "max")}
    return {**{name: round(value, 3) for name, value in asdict(point).items() if name not in times}, **times}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


_ROWS = 30


def _as_table(found: Mapping[str, Any]) -> RenderableType:
    figures, latencies = found["figures"], found["latencies"]
    counts = table_of("", "planned", "found", "", "", right=(1, 2))
    most = max((max(each["planned"], each["found"]) for each in found["counts"]), default=0) or 1
    for each in found["counts"][:_ROWS]:
        mark = "" if each["planned"] == each["found"] else "differs"
        name = visible(each["name"])
        counts.add_row(name, f"{each['planned']:,}", f"{each['found']:,}", bar(each["found"] / most, 20), mark)
    facts = table_of("", "", folded=(0, 1))
    sums = [f"{figures[name]:,} {name}" for name in ("sent", "answered", "refused", "failed")]
    facts.add_row(found["requests"], ", ".join(sums))
    if figures["late"]:
        facts.add_row("late", f"{figures['late']:,} refused, as planned")
    if figures["repeated"]:
        facts.add_row("repeated", f"{figures['repeated']:,} after 429 or 503, as Retry-After demands")
    facts.add_row("rate", f"{figures['rate']:,.1f}/s")
    if latencies:
        facts.add_row("latency", ", ".join(f"{name} {value:,.1f} ms" for name, value in latencies.items()))
    for reason, count in list(found["reasons"].items())[:5]:
        facts.add_row("failed" if reason[:1] == "5" else "refused", f"{count:,} times {visible(reason)}")
    return stacked(counts, facts, f"result: {found['verdict']}")


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


_AREA = {"left": 64, "right": 708, "top": 12, "bottom": 192}
"""Where lines are drawn, in units of a chart."""
_CHARTS = {
    ("Rate", "per second"): ("answered", "planned"),
    ("Latency", "ms"): ("p50", "p99", "max"),
    ("Refusals and failures", "per second"): ("refused",),
}
"""The title and the unit of each chart, and the columns of the series that it draws."""


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write the report of a run. The file has the old content or the new, never a mix. Raises `UsageError`."""
    try:
        atomic_file.replace(path, page(found))
    except OSError as error:
        raise atomic_file.cannot_be_written(path, error) from None


def page(found: Mapping[str, Any]) -> str:
    """Return the report as HTML. `found` is what `-o json` prints."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"shown": _shown_number, "figure": _shown_figure}
    most = max((max(each["planned"], each["found"]) for each in found["counts"]), default=0) or 1
    charts = [_chart(*name, columns, found["series"]) for name, columns in _CHARTS.items() if found["series"]]
    return templates.get_template("report.html").render(found, most=most, charts=charts, area=_AREA)


def _chart(title: str, unit: str, columns: Sequence[str], series: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a chart for the template: values over the seconds of a run, as lines in `_AREA`."""
    end = series[-1]["at"] or 1.0
    largest = {name: max((each[name] for each in series if each[name] is not None), default=0) for name in columns}
    most = _rounded_up(max(largest.values()))

    def x_of(at: float) -> float:
        return round(_AREA["left"] + at / end * (_AREA["right"] - _AREA["left"]), 1)

    def y_of(value: float) -> float:
        return round(_AREA["top"] + (1 - value / most) * (_AREA["bottom"] - _AREA["top"]), 1)

    def runs(name: str) -> list[list[tuple[float, float]]]:
        """Split a line at its gaps. A single point becomes a short line."""
        found: list[list[tuple[float, float]]] = [[]]
        for each in series:
            if each[name] is None:
                found.append([])
            else:
                found[-1].append((x_of(each["at"]), y_of(each[name])))
        return [points * 2 if len(points) == 1 else points for points in found if points]

    return {
        "title": title,
        "unit": unit,
        "end": end,
        "lines": [{"name": name, "most": largest[name], "runs": runs(name)} for name in columns],
        "rows": [(value, y_of(value)) for value in (0.0, most / 2, most)],
        "columns": [(at, x_of(at), anchor) for at, anchor in ((0.0, "start"), (end / 2, "middle"), (end, "end"))],
    }


def _rounded_up(value: float) -> float:
    """Return a number rounded up to 1, 2 or 5 times a power of ten; 1 for 0."""
    step = 0.001
    while value > 0:
        for factor in (1, 2, 5):
            if value <= step * factor:
                return step * factor
        step *= 10
    return 1.0


def _shown_figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _shown_number(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
