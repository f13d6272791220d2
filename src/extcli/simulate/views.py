"""Views of a run: a table for people, and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import bar, stacked, table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_ROWS = 30


def _table(found: Mapping[str, Any]) -> RenderableType:
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


def _rows(found: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    yield "verdict", field(found["verdict"])
    for each in found["counts"]:
        yield "count", field(each["name"]), field(each["planned"]), field(each["found"])
    for name, value in {**found["figures"], **found["latencies"]}.items():
        yield name, field(value)
    for each in found["expectations"]:
        yield "expectation", field(each["text"]), "met" if each["met"] else "not met", field(each["found"])


RUN = View(table=_table, rows=_rows)
"""Plain output is `verdict`, then `count`, name, planned and found, then figures, latencies in ms, and expectations."""
