"""Writes the measured parts of the page: `make bench-docs`, or `python benchmarks/page.py`.

Takes the results of the last runs into `benchmarks/measurements.json`, and writes from it the tables of
`docs/performance.md`.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from report import MEASUREMENTS, Result, Row, in_order, load_measurements, number, spread, stored
from run import SOAK, SOURCES

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def collect() -> None:
    """Replace the measurements that were run again, and drop those that no longer exist."""
    results = {result.name: result for result in (*load_measurements(), *stored())}
    kept = [results[name] for name in (*(source.name for source in SOURCES), SOAK) if name in results]
    text = msgspec.json.format(msgspec.json.encode(kept), indent=1)
    MEASUREMENTS.write_bytes(text + b"\n")


def machine(results: list[Result]) -> str:
    """Describe where and when the results were measured."""
    systems = sorted(
        {
            f"{one.cores} cores of {one.processor}, {one.memory_gib} GiB, {one.system}, Python {one.python}"
            for one in (result.machine for result in results)
        }
    )
    commits = sorted({result.machine.commit for result in results})
    days = sorted({result.day for result in results})
    return f"Measured {' and '.join(days)} on {' and '.join(systems)}; commit {', '.join(commits)}."


def table(rows: list[Row]) -> str:
    """Return the rows that have a goal as a Markdown table."""
    lines = ["| Goal | Ratio | Median (range) | Must | Stretch | Noise | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        if row.must is None:
            continue
        sign = "" if row.higher_is_better else "≤ "
        verdict = row.verdict + (f"; {row.warning}" if row.warning else "")
        cells = (
            row.goal,
            row.name,
            f"{row.median:.4g}" if len(row.values) == 1 else spread(row.values),
            number(row.must, sign),
            number(row.stretch, sign),
            spread(row.noise) if row.noise else "",
            verdict,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def fill(text: str, name: str, content: str) -> str:
    """Return a document with new content between the comments `NAME` and `/NAME`."""
    pattern = re.compile(rf"(<!-- {name}: [^\n]* -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    assert pattern.search(text), f"no part {name}"
    return pattern.sub(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)


def render() -> str:
    """Return the page as the measurements have it."""
    results = load_measurements()
    rows = in_order(row for result in results for row in result.rows)
    text = PAGE.read_text()
    for name, content in (("machine", machine(results)), ("goals", table(rows))):
        text = fill(text, name, content)
    return text


if __name__ == "__main__":
    collect()
    PAGE.write_text(render())
