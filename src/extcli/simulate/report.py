"""The report of a run: one HTML file with charts as inline SVG, which needs no script and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from extcli import atomic_file

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 28
_INNER_WIDTH, _INNER_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM


class Line(NamedTuple):
    """One line of a chart; `None` is a gap. Its name is also its class."""

    name: str
    values: Sequence[float | None]


def lines(title: str, unit: str, at: Sequence[float], drawn: Sequence[Line]) -> str:
    """Return a chart of values over the seconds of a run, with a legend."""
    known = [value for line in drawn for value in line.values if value is not None]
    most = _rounded_up(max(known, default=0.0))
    end = max(at, default=0.0) or 1.0
    parts = [_grid(most, unit, end)]
    for number, line in enumerate(drawn):
        for points in _runs(at, line.values):
            path = " ".join(f"{_x(x, end):.1f},{_y(value, most):.1f}" for x, value in points)
            parts.append(f'<polyline class="line{number}" points="{path}"/>')
    legend = "".join(
        f'<li><svg class="key" viewBox="0 0 24 8" aria-hidden="true"><path class="line{number}" d="M0 4H24"/></svg>'
        f"{escape(line.name)}</li>"
        for number, line in enumerate(drawn)
    )
    highest = ", ".join(f"{line.name} at most {_number(max(_known(line.values), default=0))}" for line in drawn)
    label = escape(f"{title} over {end:.3g} s: {highest} {unit}".strip(), quote=True)
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><ul class="legend">{legend}</ul>'
        f'<svg class="chart" role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(parts)}</svg>'
        "</figure>"
    )


def bars(rows: Sequence[Mapping[str, object]]) -> str:
    """Return a table of the planned and found counts, with bars. A row has `name`, `planned` and `found`."""
    numbers = [(str(row["name"]), _count(row["planned"]), _count(row["found"])) for row in rows]
    most = max((max(planned, found) for _, planned, found in numbers), default=0) or 1
    body = "".join(
        f'<tr{" class=differs" if planned != found else ""}><th scope="row"><bdi>{escape(name)}</bdi></th>'
        f'<td class="number">{planned:,}</td><td class="number">{found:,}</td>'
        f'<td class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="planned" width="{planned / most * 100:.2f}" height="4"/>'
        f'<rect class="found" y="5" width="{found / most * 100:.2f}" height="5"/></svg></td>'
        f"<td>{'differs' if planned != found else 'equal'}</td></tr>"
        for name, planned, found in numbers
    )
    return (
        '<table><thead><tr><th scope="col">Choice</th><th scope="col" class="number">Planned</th>'
        '<th scope="col" class="number">Found</th><th scope="col" class="bar">Planned above, found below</th>'
        f'<th scope="col">Result</th></tr></thead><tbody>{body}</tbody></table>'
    )


def _grid(most: float, unit: str, end: float) -> str:
    bottom, right = _TOP + _INNER_HEIGHT, _LEFT + _INNER_WIDTH
    rows = "".join(
        f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(_number(value))}</text>'
        for value in (0.0, most / 2, most)
        if (y := _y(value, most)) is not None
    )
    columns = "".join(
        f'<text x="{_x(at, end):.1f}" y="{bottom + 18}" text-anchor="{anchor}">{at:.3g} s</text>'
        for at, anchor in ((0.0, "start"), (end / 2, "middle"), (end, "end"))
    )
    return f'{rows}{columns}<text x="{_LEFT + 4}" y="{_TOP + 12}">{escape(unit)}</text>'


def _runs(at: Sequence[float], values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Split a line at its gaps. A single point becomes a short line."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, value in zip(at, values, strict=True):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((x, value))
    return [[*points, *points] if len(points) == 1 else points for points in runs if points]


def _x(at: float, end: float) -> float:
    return _LEFT + at / end * _INNER_WIDTH


def _y(value: float, most: float) -> float:
    return _TOP + (1 - value / most) * _INNER_HEIGHT


def _rounded_up(value: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten; 1 for 0."""
    step = 0.001
    while value > 0:
        for factor in (1, 2, 5):
            if value <= step * factor:
                return step * factor
        step *= 10
    return 1.0


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


_STYLE = """
:root { color-scheme: light dark; --back: #fff; --raised: #f3f4f6; --faint: #d5d9df; --text: #1b1f24; --soft: #4b5563;
  --one: #0b57b7; --two: #a34a00; --three: #6b2fa8; --error: #a3161f; --good: #14602a; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --raised: #1f242b; --faint: #3a414b; --text: #e8eaed;
  --soft: #b3bac4; --one: #8ab8ff; --two: #ffb87a; --three: #d3a8ff; --error: #ff9d96; --good: #7fd69a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--text);
  background: var(--back); overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.verdict { font-weight: 700; } .good { color: var(--good); } .error, .differs { color: var(--error); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--faint); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.bar { width: 45%; } td.bar svg { display: block; width: 100%; height: 1.4rem; background: var(--raised); }
.planned { fill: var(--two); } .found { fill: var(--one); }
figure { margin: 1rem 0; } figcaption { font-weight: 600; }
.chart { display: block; width: 100%; background: var(--raised); }
.chart text { fill: var(--text); font-size: 12px; }
.grid { stroke: var(--faint); fill: none; }
polyline, .key path { fill: none; stroke-width: 2; }
.line0 { stroke: var(--one); } .line1 { stroke: var(--two); stroke-dasharray: 6 3; }
.line2 { stroke: var(--three); stroke-dasharray: 2 3; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1.25rem; list-style: none; margin: 0; padding: 0; color: var(--soft); }
.key { width: 1.5rem; height: .5rem; margin-right: .35rem; vertical-align: middle; }
dl { display: grid; grid-template-columns: minmax(6rem, 12rem) 1fr; gap: .25rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_POINTS = ("at", "planned", "answered", "refused", "p50", "p99", "max")


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write the report of a run. The file has the old content or the new, never a mix. Raises `UsageError`."""
    try:
        atomic_file.replace(path, page(found))
    except OSError as error:
        raise atomic_file.cannot_be_written(path, error) from None


def page(found: Mapping[str, Any]) -> str:
    """Return the report as HTML. `found` is what `-o json` prints."""
    title = f"Simulation of {found['what']} {found['id']}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>{_summary(found)}"
        f"<h2>Result</h2>{bars(found['counts'])}{_list(found['faults'])}"
        f"<h2>Figures</h2>{_figures(found)}{_expectations(found['expectations'])}{_reasons(found['reasons'])}"
        f"<h2>Over time</h2>{_charts(found)}</main></body></html>\n"
    )


def _summary(found: Mapping[str, Any]) -> str:
    verdict = str(found["verdict"])
    color = "good" if verdict == "as planned" else "error"
    notes = _list([found["will"], *found["notes"]])
    undecided = f", {found['undecided']:,} undecided" if found["undecided"] else ""
    return f'<p class="verdict {color}">Result: {escape(verdict)}{undecided}</p>{notes}'


def _figures(found: Mapping[str, Any]) -> str:
    figures = found["figures"]
    pairs = [("seed", found["seed"]), ("viewers", found["viewers"]), *figures.items()]
    pairs += [(f"latency {name}", f"{value:,.1f} ms") for name, value in found["latencies"].items()]
    pairs.append(("late by this program", f"at most {found['lag']:,.1f} ms"))
    rows = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(_shown(value))}</dd>" for name, value in pairs)
    return f"<dl>{rows}</dl><p>Latency counts from the instant at which a request was planned.</p>"


def _expectations(all: Sequence[Mapping[str, Any]]) -> str:
    if not all:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(each["text"])}</th><td>{escape(each["found"])}</td>'
        f'<td class="{"good" if each["met"] else "error"}">{"met" if each["met"] else "not met"}</td></tr>'
        for each in all
    )
    head = '<tr><th scope="col">Expected</th><th scope="col">Found</th><th scope="col">Result</th></tr>'
    return f"<h3>Expectations</h3><table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _reasons(reasons: Mapping[str, int]) -> str:
    if not reasons:
        return ""
    return f"<h3>Refusals and failures</h3>{_list([f'{count:,} times {reason}' for reason, count in reasons.items()])}"


def _charts(found: Mapping[str, Any]) -> str:
    points = found["series"]
    if not points:
        return "<p>No request was sent.</p>"
    of = {name: [point[name] for point in points] for name in _POINTS}
    at = of["at"]
    return (
        lines("Rate", "per second", at, [Line("answered", of["answered"]), Line("planned", of["planned"])])
        + lines("Latency", "ms", at, [Line(name, of[name]) for name in ("p50", "p99", "max")])
        + lines("Refusals and failures", "per second", at, [Line("refused", of["refused"])])
        + _table(points)
    )


def _table(points: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f'<th scope="col" class="number">{name}</th>' for name in _POINTS)
    rows = "".join(
        "<tr>" + "".join(f'<td class="number">{_shown(point[name])}</td>' for name in _POINTS) + "</tr>"
        for point in points
    )
    return (
        "<details><summary>The same as a table</summary><p>Seconds, requests per second, and ms.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
