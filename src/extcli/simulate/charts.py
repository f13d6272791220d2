"""Charts as inline SVG, without script. Pure. Colors come from the style sheet of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

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
