"""Draws the samples of `soak.py` as an SVG: one panel per figure, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PANELS = {
    "memory_mib": "memory, MiB",
    "data_mib": "data file, MiB",
    "files": "open files",
    "tasks": "tasks",
    "sockets": "sockets",
    "p99_ms": "p99 of votes, ms",
}
WIDTH, HEIGHT, LEFT, GAP = 720, 70, 70, 34
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 11px; fill: #59636e }
.line { fill: none; stroke: #2f81c7; stroke-width: 1.5 }
.frame { fill: none; stroke: #d1d9e0 } .settled { fill: #2f81c7; opacity: 0.08 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .frame { stroke: #3d444d }
}
"""


def draw(samples: Sequence[dict[str, Any]], *, since: float) -> str:
    """Return the SVG. The part from the minute `since` on, which counts, is shaded."""
    end = max(each["minutes"] for each in samples)
    bottom = len(PANELS) * (HEIGHT + GAP) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {bottom}" role="img">',
        "<title>The service under a long load, at the end of each cycle</title>",
        f"<style>{STYLE}</style>",
    ]
    for number, (name, label) in enumerate(PANELS.items()):
        top = number * (HEIGHT + GAP) + 24
        values = [each[name] for each in samples]
        most = max(*values, 1) * 1.1
        points = " ".join(
            f"{LEFT + WIDTH * each['minutes'] / end:.1f},{top + HEIGHT * (1 - each[name] / most):.1f}"
            for each in samples
        )
        start = LEFT + WIDTH * since / end
        parts += [
            f'<text x="{LEFT}" y="{top - 6}">{label}: {min(values):g} to {max(values):g}</text>',
            f'<rect class="settled" x="{start:.1f}" y="{top}" width="{LEFT + WIDTH - start:.1f}" height="{HEIGHT}"/>',
            f'<rect class="frame" x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}"/>',
            f'<polyline class="line" points="{points}"/>',
            f'<text class="small" x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most:.4g}</text>',
            f'<text class="small" x="{LEFT - 6}" y="{top + HEIGHT}" text-anchor="end">0</text>',
        ]
    parts.append(f'<text class="small" x="{LEFT + WIDTH}" y="{bottom - 2}" text-anchor="end">{end:g} minutes</text>')
    return "\n".join([*parts, "</svg>", ""])
