"""Draws the goals as an SVG: how many times better than its must each ratio is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from report import Row, spread

LABELS, BARS, VALUES = 470, 400, 170
"""Widths of the three columns in pixels."""
LINE, TOP = 22, 46
SCALE = (0.25, 8.0)
"""The smallest and the largest score shown; bars are cut there."""
TICKS = (0.25, 0.5, 1, 2, 4, 8)
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 11px; fill: #59636e }
.grid { stroke: #d1d9e0 } .must { stroke: #1f2328; stroke-width: 1.5 }
.met { fill: #2f81c7 } .missed { fill: #d9734e } .near { fill: #9a8c4b }
.range { stroke: #1f2328 } .stretch { stroke: #1f2328; stroke-width: 2; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d }
  .must, .range, .stretch { stroke: #e6edf3 }
}
"""
CLASSES = {"met": "met", "not met": "missed", "within noise": "near"}


def score(row: Row, value: float) -> float:
    """Return how many times better than the must a value is."""
    assert row.must is not None
    return value / row.must if row.higher_is_better else row.must / value


def position(value: float) -> float:
    """Return the x coordinate of a score, on a logarithmic scale."""
    low, high = map(math.log, SCALE)
    share = (math.log(min(max(value, SCALE[0]), SCALE[1])) - low) / (high - low)
    return round(LABELS + share * BARS, 1)


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def text(x: float, y: float, content: str, *, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(content)}</text>'


def draw_row(row: Row, middle: float) -> list[str]:
    """Draw one bar from the must to the median, with its range and a mark at the stretch."""
    assert row.stretch
    must, median = position(1), position(score(row, row.median))
    worst, best = sorted(position(score(row, value)) for value in (min(row.values), max(row.values)))
    left, width = min(must, median), round(abs(median - must), 1)
    stretch = position(score(row, row.stretch))
    return [
        text(8, middle + 4, row.goal),
        text(34, middle + 4, row.name),
        f'<rect class="{CLASSES[row.verdict]}" x="{left}" y="{middle - 6}" width="{width}" height="12" rx="2"/>',
        line("range", worst, middle, best, middle),
        *(line("range", x, middle - 4, x, middle + 4) for x in (worst, best)),
        line("stretch", stretch, middle - 9, stretch, middle + 9),
        text(LABELS + BARS + 14, middle + 4, spread(row.values), kind="small"),
    ]


def legend() -> list[str]:
    """Draw what the colors mean."""
    parts = []
    for x, (name, kind) in zip((LABELS, LABELS + 60, LABELS + 140), CLASSES.items(), strict=True):
        parts.append(f'<rect class="{kind}" x="{x}" y="7" width="10" height="10" rx="2"/>')
        parts.append(text(x + 15, 16, name, kind="small"))
    return parts


def draw(rows: Sequence[Row]) -> str:
    """Return the SVG of all rows that have a must above zero."""
    shown = [row for row in rows if row.must and row.stretch and min(row.values) > 0]
    width, bottom = LABELS + BARS + VALUES, TOP + LINE * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 30}" width="{width}" role="img">',
        "<title>Goals of the benchmarks: each ratio divided by its must</title>",
        f"<style>{STYLE}</style>",
        text(8, 16, "How many times better than the must. Dashed: the stretch goal.", kind="small"),
        *legend(),
        text(LABELS + BARS + 14, 16, "ratio: median (range)", kind="small"),
    ]
    for tick in TICKS:
        x = position(tick)
        parts.append(line("must" if tick == 1 else "grid", x, TOP - 10, x, bottom))
        parts.append(text(x, bottom + 16, f"{tick:g}", kind="small", anchor="middle"))
    for number, row in enumerate(shown):
        parts += draw_row(row, TOP + LINE * number + 6)
    return "\n".join([*parts, "</svg>", ""])
