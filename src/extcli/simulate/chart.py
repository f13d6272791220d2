"""The report of a simulation: one HTML file with charts as inline SVG, which needs no script and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from extcli.simulate.outcome import rounded_up

_AREA = {"left": 64, "right": 708, "top": 12, "bottom": 192}
"""Where lines are drawn, in units of a chart."""
_CHARTS = {
    ("Rate", "per second"): ("answered", "planned"),
    ("Latency", "ms"): ("p50", "p99", "max"),
    ("Refusals and failures", "per second"): ("refused",),
}
"""The title and the unit of each chart, and the columns of the series that it draws."""


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
    most = rounded_up(max(largest.values()))

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


def _shown_figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _shown_number(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
