"""The result of a simulation: the JSON of `-o json`, the table, and the error that ends the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extcli import atomic_file
from extcli.errors import CliError, ExpectationFailed, Unreachable
from extcli.output.columns import table_of
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import bar, stacked
from extcli.session import Session
from extcli.simulate import chart
from extcli.simulate.expectations import Expectation
from extcli.simulate.outcome import Comparison, Tally, Verdict, in_ms

if TYPE_CHECKING:
    from rich.console import RenderableType

Series = Mapping[str, float | None]
"""An interval of a run, as `points_over_time` returns it."""
_SHOWN = 12
"""Rows of a table in an error."""
_UNDECIDED = {"buffer": ("entry", "entries"), "event": ("delivery", "deliveries")}
"""The word for an undecided item, if it is not a user: singular and plural."""


def conclude(session: Session, found: dict[str, Any], comparison: Comparison, report: Path | None) -> None:
    """Print the result of a simulation and write its HTML report.

    Raises an error if the result differs from the plan or `--expect`.
    """
    session.output.show_value(found, RUN)
    if report is not None:
        atomic_file.save(report, chart.page(found))
        session.output.note(f"report: {report}")
    if error := error_of(found, comparison):
        raise error


def document(
    comparison: Comparison, tally: Tally, expectations: Sequence[Expectation], points: Sequence[Series], **about: object
) -> dict[str, Any]:
    """Return everything about a run, as `-o json` prints it. Latencies are in ms, times in seconds.

    `about` has the names and texts of the run: which simulation of what, its seed, and what it promised.
    """
    figures = {name: value for name, value in asdict(tally).items() if name not in ("latencies", "reasons", "lag")}
    figures["rate"] = round(tally.rate, 2)
    return {
        **about,
        "verdict": comparison.verdict,
        "undecided": comparison.undecided,
        "faults": list(comparison.faults),
        "counts": [{"name": each.name, "planned": each.planned, "found": each.found} for each in comparison.counts],
        "figures": figures,
        "latencies": {name: in_ms(seconds) for name, seconds in tally.latencies.items()},
        "lag": in_ms(tally.lag),
        "reasons": dict(tally.reasons),
        "expectations": [
            {"text": each.text, "met": each.is_met(tally), "found": each.found(tally)} for each in expectations
        ],
        "series": list(points),
    }


def error_of(found: Mapping[str, Any], comparison: Comparison) -> CliError | None:
    """Return the error that ends the command; `None` if the result is as planned and every expectation is met."""
    failed = [each for each in found["expectations"] if not each["met"]]
    if comparison.verdict is Verdict.DIFFERS:
        what = f"the result of {found['what']} {visible(found['id'])} differs from the plan"
        lines = [*_table(comparison), *map(visible, comparison.faults), _cause_of_difference(comparison)]
        return _not_as_planned(ExpectationFailed, what, [*lines, *_unmet_expectations(failed)])
    if failed:
        return _not_as_planned(ExpectationFailed, "not as expected", _unmet_expectations(failed))
    if comparison.verdict is Verdict.NOT_DECIDED:
        count = comparison.undecided
        one, many = _UNDECIDED.get(found["what"], ("user", "users"))
        are = f"{many} are" if count > 1 else f"{one} is"
        what = f"the result of {found['what']} {visible(found['id'])} is not decided: {count:,} {are} undecided"
        doubt = "requests without a response, or with 5xx, may or may not have been applied"
        return _not_as_planned(Unreachable, what, [*_table(comparison), doubt])
    return None


def _not_as_planned(kind: type[CliError], what: str, lines: Sequence[str]) -> CliError:
    """Return the error for a complete run whose result or figures are not as planned or expected."""
    details = [line for line in lines if line]
    return kind(what, details=details, facts={"details": details})


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
